// Command monitoring checks the objects of the Prometheus Operator that it reads from stdin, as YAML documents: fields
// that do not exist, and expressions that Prometheus cannot parse. It prints the names of the metrics that the
// expressions need, one a line. It is a module of its own, because the product needs neither of the two.
package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql/parser"
	"k8s.io/apimachinery/pkg/util/yaml"
	strict "sigs.k8s.io/yaml"
)

func main() {
	names, err := check(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
	for _, name := range names {
		fmt.Println(name)
	}
}

func check(in io.Reader) ([]string, error) {
	names := map[string]bool{}
	for documents := yaml.NewYAMLReader(bufio.NewReader(in)); ; {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return slices.Sorted(maps.Keys(names)), nil
		}
		if err != nil {
			return nil, err
		}
		var kind struct{ Kind string }
		if err := strict.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		switch kind.Kind {
		case "ServiceMonitor":
			if err := strict.UnmarshalStrict(document, new(monitoring.ServiceMonitor)); err != nil {
				return nil, err
			}
		case "PrometheusRule":
			if err := rules(document, names); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("the kind %q is not one of the Prometheus Operator", kind.Kind)
		}
	}
}

// rules adds the metrics of a PrometheusRule to names.
func rules(document []byte, names map[string]bool) error {
	var rule monitoring.PrometheusRule
	if err := strict.UnmarshalStrict(document, &rule); err != nil {
		return err
	}
	for _, group := range rule.Spec.Groups {
		for _, r := range group.Rules {
			expression, err := parser.NewParser(parser.Options{}).ParseExpr(r.Expr.String())
			if err != nil {
				return fmt.Errorf("alert %s: %w", r.Alert, err)
			}
			parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
				if selector, ok := node.(*parser.VectorSelector); ok {
					for _, m := range selector.LabelMatchers {
						if m.Name == labels.MetricName {
							names[m.Value] = true
						}
					}
				}
				return nil
			})
		}
	}
	return nil
}
