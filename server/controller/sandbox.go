package controller

import (
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/condition"
	"github.com/hykube/hykube/internal/provider/contain"
)

// grants returns the rights that a Provider gives to its processes.
func grants(obj *v1alpha1.Provider) contain.Grants {
	g := contain.Grants{Provider: obj.Name, Environment: obj.Spec.Environment}
	s := obj.Spec.Sandbox
	if s == nil {
		return g
	}
	g.Off = s.Mode == v1alpha1.SandboxOff
	g.ReadPaths, g.WritePaths, g.ExecutePaths = s.ReadPaths, s.WritePaths, s.ExecutePaths
	for _, port := range s.ConnectPorts {
		g.ConnectPorts = append(g.ConnectPorts, uint16(port))
	}
	return g
}

// sandboxed sets the condition Sandboxed of a Provider. source is the provider's address.
func (p *Providers) sandboxed(conditions *[]metav1.Condition, obj *v1alpha1.Provider, source string) {
	r := p.Containment.Report(source, grants(obj))
	reason := v1alpha1.ReasonSandboxUnsupported
	switch {
	case r.Contained:
		reason = v1alpha1.ReasonContained
	case r.Off:
		reason = v1alpha1.ReasonSandboxOff
	}
	condition.Set(conditions, obj.Generation, v1alpha1.ConditionSandboxed, r.Contained, reason, r.Message)
}

// refusedSandbox reports whether a provider was not started because of its sandbox.
func refusedSandbox(err error) bool {
	_, unavailable := errors.AsType[*contain.UnavailableError](err)
	_, path := errors.AsType[*contain.PathError](err)
	return unavailable || path
}
