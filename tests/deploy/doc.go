// Package deploy tests what is in deploy/: the Helm chart, the systemd unit, the container file and the compose file. It
// builds Helm and a checker for the objects of the Prometheus Operator from the modules below it, which the product
// does not need. It starts the server with the arguments that the chart gives to the container. With the flag -kubernetes,
// it builds Kubernetes' API server and installs the chart there. It also installs a chart of resources and a Stack on a
// Hykube server, because the tests of Helm share its binaries.
package deploy
