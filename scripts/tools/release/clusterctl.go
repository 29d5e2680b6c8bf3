package main

import (
	"fmt"
	"strings"
)

// A line that clusterctl's variables replace.
const roleLine = "ROLE_OF_THE_SERVICE_ACCOUNT"

// clusterctl is the components with the variables of clusterctl: the settings, the names of cluster-scoped objects, and the role
// of the service account.
func (p provider) clusterctl(objects []object) ([]byte, error) {
	objects, err := deepCopy(objects)
	if err != nil {
		return nil, err
	}
	container, err := container(objects)
	if err != nil {
		return nil, err
	}
	for _, setting := range p.Settings {
		_, err := setting.set(container, func(before, value string) string {
			return fmt.Sprintf("%s${%s:=%s}", before, setting.Variable, value)
		})
		if err != nil {
			return nil, err
		}
	}
	prefix := fmt.Sprintf("${%s:=%s}-", p.NamespaceVariable, p.Namespace)
	if err := p.rename(objects, prefix); err != nil {
		return nil, err
	}
	if p.RoleVariable != "" {
		account, err := only(objects, "ServiceAccount")
		if err != nil {
			return nil, err
		}
		at(account, "metadata")["annotations"] = roleLine
	}
	text, err := toYAML(objects)
	if err != nil {
		return nil, err
	}
	// The value of the variable without its first letters, after the name of the annotation; nothing without a value.
	role := fmt.Sprintf("\n    ${%s/#arn/eks.amazonaws.com/role-arn: arn}", p.RoleVariable)
	return []byte(strings.ReplaceAll(string(text), " "+roleLine, role)), nil
}

// rename replaces the namespace at the beginning of the names of cluster-scoped objects, and of references to them.
func (p provider) rename(objects []object, prefix string) error {
	replace := func(holder map[string]any, key string) error {
		name, _ := holder[key].(string)
		rest, ok := strings.CutPrefix(name, p.Namespace+"-")
		if !ok {
			return fmt.Errorf("the name %s does not begin with %s-", name, p.Namespace)
		}
		holder[key] = prefix + rest
		return nil
	}
	for _, object := range objects {
		if object.isClusterScoped() {
			if err := replace(at(object, "metadata"), "name"); err != nil {
				return err
			}
		}
		if role := at(object, "roleRef"); role != nil && role["kind"] == "ClusterRole" {
			if err := replace(role, "name"); err != nil {
				return err
			}
		}
		if object["kind"] == "ValidatingAdmissionPolicyBinding" {
			if err := replace(at(object, "spec"), "policyName"); err != nil {
				return err
			}
		}
	}
	return nil
}
