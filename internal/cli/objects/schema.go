package objects

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hykube/hykube/api/v1alpha1"
	"github.com/hykube/hykube/internal/cli/session"
	"github.com/hykube/hykube/internal/openapi"
)

// ProviderSchema returns the OpenAPI document of a provider's kinds.
func ProviderSchema(ctx context.Context, s *session.Session, provider string) (*openapi.Document, error) {
	raw, err := s.Hykube.Get().AbsPath("/openapi/v3/apis/"+v1alpha1.ProviderGroup(provider)+"/"+v1alpha1.ResourceVersion).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if apierrors.IsNotFound(err) || err == nil && len(raw) == 0 {
		return nil, fmt.Errorf("provider %q serves no kinds: `kubectl hykube provider list` shows which are installed and ready", provider)
	}
	if err != nil {
		return nil, fmt.Errorf("read schema of provider %q: %w", provider, s.Explain(err))
	}
	doc := &openapi.Document{}
	if err := json.Unmarshal(raw, doc); err != nil {
		return nil, fmt.Errorf("read schema of provider %q: %w", provider, err)
	}
	return doc, nil
}
