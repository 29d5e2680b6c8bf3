// Prints the fields of the request and response types of the Runtime Hooks of Cluster API, by type, as JSON.
//
// In the folder of the module: go run ./hooks > ../../../extensions/tests/fixtures/hooks-v1.14.2.json
package main

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	hooks "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// A field as encoding/json writes it.
type field struct {
	Type string `json:"type"`
	// Left out where it is empty.
	Optional bool `json:"optional,omitempty"`
}

// Types whose content is any JSON, or is read by the caller.
var opaque = map[reflect.Type]bool{
	reflect.TypeFor[apiextensionsv1.JSON]():                   true,
	reflect.TypeFor[runtime.RawExtension]():                   true,
	reflect.TypeFor[clusterv1.Cluster]():                      true,
	reflect.TypeFor[clusterv1.VariableSchema]():               true,
	reflect.TypeFor[clusterv1.ClusterClassVariableMetadata](): true,
}

type collector map[string]map[string]field

func (c collector) name(t reflect.Type) string {
	switch {
	case opaque[t]:
		return "any"
	case t.Kind() == reflect.Pointer:
		return c.name(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return "base64"
	case t.Kind() == reflect.Slice:
		return "[]" + c.name(t.Elem())
	case t.Kind() == reflect.Map:
		return "map[" + c.name(t.Key()) + "]" + c.name(t.Elem())
	case t.Kind() == reflect.Struct:
		c.add(t)
		return t.Name()
	default:
		return t.Kind().String()
	}
}

func (c collector) add(t reflect.Type) {
	if _, done := c[t.Name()]; done {
		return
	}
	fields := map[string]field{}
	c[t.Name()] = fields
	c.fields(t, fields)
}

func (c collector) fields(t reflect.Type, into map[string]field) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" && strings.Contains(options, "inline") {
			c.fields(f.Type, into)
			continue
		}
		into[name] = field{Type: c.name(f.Type), Optional: strings.Contains(options, "omit")}
	}
}

func main() {
	types := collector{}
	for _, t := range []any{
		hooks.DiscoveryRequest{}, hooks.DiscoveryResponse{},
		hooks.DiscoverVariablesRequest{}, hooks.DiscoverVariablesResponse{},
		hooks.GeneratePatchesRequest{}, hooks.GeneratePatchesResponse{},
		hooks.ValidateTopologyRequest{}, hooks.ValidateTopologyResponse{},
		hooks.BeforeClusterCreateRequest{}, hooks.BeforeClusterCreateResponse{},
		hooks.AfterControlPlaneInitializedRequest{}, hooks.AfterControlPlaneInitializedResponse{},
		hooks.BeforeClusterUpgradeRequest{}, hooks.BeforeClusterUpgradeResponse{},
		hooks.BeforeControlPlaneUpgradeRequest{}, hooks.BeforeControlPlaneUpgradeResponse{},
		hooks.AfterControlPlaneUpgradeRequest{}, hooks.AfterControlPlaneUpgradeResponse{},
		hooks.BeforeWorkersUpgradeRequest{}, hooks.BeforeWorkersUpgradeResponse{},
		hooks.AfterWorkersUpgradeRequest{}, hooks.AfterWorkersUpgradeResponse{},
		hooks.AfterClusterUpgradeRequest{}, hooks.AfterClusterUpgradeResponse{},
		hooks.BeforeClusterDeleteRequest{}, hooks.BeforeClusterDeleteResponse{},
		hooks.GenerateUpgradePlanRequest{}, hooks.GenerateUpgradePlanResponse{},
	} {
		types.add(reflect.TypeOf(t))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetIndent("", " ")
	if err := out.Encode(types); err != nil {
		panic(err)
	}
}
