package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// argoRule is the health check that docs/waiting.md gives to the users of Argo CD. It judges objects as Argo CD does, which
// has its Lua interpreter in a package that imports the whole product.
type argoRule struct{ script string }

var readArgoRule = sync.OnceValues(func() (argoRule, error) {
	page, err := os.ReadFile("../../docs/waiting.md")
	if err != nil {
		return argoRule{}, err
	}
	_, rest, _ := strings.Cut(string(page), "```lua\n")
	script, _, ok := strings.Cut(rest, "```")
	if !ok {
		return argoRule{}, fmt.Errorf("docs/waiting.md has no rule for Argo CD")
	}
	return argoRule{script}, nil
})

// GetResourceHealth runs the rule, with the object in the global variable obj.
func (r argoRule) GetResourceHealth(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for _, open := range []lua.LGFunction{lua.OpenBase, lua.OpenTable, lua.OpenString} {
		l.Push(l.NewFunction(open))
		l.Call(0, 0)
	}
	l.SetGlobal("obj", luaValue(l, obj.Object))
	if err := l.DoString(r.script); err != nil {
		return nil, err
	}
	answer, ok := l.Get(-1).(*lua.LTable)
	if !ok {
		return nil, fmt.Errorf("the rule returns %s", l.Get(-1).Type())
	}
	return &health.HealthStatus{
		Status: health.HealthStatusCode(lua.LVAsString(answer.RawGetString("status"))), Message: lua.LVAsString(answer.RawGetString("message")),
	}, nil
}

func luaValue(l *lua.LState, v any) lua.LValue {
	switch v := v.(type) {
	case string:
		return lua.LString(v)
	case bool:
		return lua.LBool(v)
	case int64:
		return lua.LNumber(v)
	case float64:
		return lua.LNumber(v)
	case []any:
		t := l.NewTable()
		for _, item := range v {
			t.Append(luaValue(l, item))
		}
		return t
	case map[string]any:
		t := l.NewTable()
		for key, item := range v {
			t.RawSetString(key, luaValue(l, item))
		}
		return t
	}
	return lua.LNil
}

// argoHealth returns the health that Argo CD shows for an object.
func argoHealth(obj *unstructured.Unstructured) (*health.HealthStatus, error) {
	rule, err := readArgoRule()
	if err != nil {
		return nil, err
	}
	return health.GetResourceHealth(obj, rule)
}

// argoHealthOf is the health that stands for a status of kstatus. Argo CD shows a deleted object as Progressing.
var argoHealthOf = map[string]health.HealthStatusCode{
	"Current": health.HealthStatusHealthy, "InProgress": health.HealthStatusProgressing, "Failed": health.HealthStatusDegraded,
	"Terminating": health.HealthStatusProgressing,
}
