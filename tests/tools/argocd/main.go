// Runs health scripts as Argo CD does: for each line of JSON on its input, with a script and an object, a line with the health.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	lua "github.com/yuin/gopher-lua"
)

type question struct {
	Script string         `json:"script"`
	Object map[string]any `json:"object"`
}

type answer struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// The libraries that Argo CD opens for scripts that do not request others.
var libraries = []struct {
	name string
	open lua.LGFunction
}{
	{lua.LoadLibName, lua.OpenPackage},
	{lua.BaseLibName, lua.OpenBase},
	{lua.TabLibName, lua.OpenTable},
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	input := json.NewDecoder(bufio.NewReader(os.Stdin))
	output := json.NewEncoder(os.Stdout)
	for input.More() {
		var q question
		if err := input.Decode(&q); err != nil {
			return err
		}
		health, err := q.health()
		if err != nil {
			return err
		}
		if err := output.Encode(health); err != nil {
			return err
		}
	}
	return nil
}

func (q question) health() (answer, error) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for _, library := range libraries {
		call := lua.P{Fn: state.NewFunction(library.open), NRet: 0, Protect: true}
		if err := state.CallByParam(call, lua.LString(library.name)); err != nil {
			return answer{}, err
		}
	}
	state.SetGlobal("obj", value(state, q.Object))
	if err := state.DoString(q.Script); err != nil {
		return answer{}, err
	}
	result, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		return answer{}, fmt.Errorf("the script returns no table but %s", state.Get(-1).Type())
	}
	return answer{
		Status:  lua.LVAsString(result.RawGetString("status")),
		Message: lua.LVAsString(result.RawGetString("message")),
	}, nil
}

// A JSON value in Lua.
func value(state *lua.LState, of any) lua.LValue {
	switch of := of.(type) {
	case bool:
		return lua.LBool(of)
	case float64:
		return lua.LNumber(of)
	case string:
		return lua.LString(of)
	case []any:
		table := state.CreateTable(len(of), 0)
		for _, item := range of {
			table.Append(value(state, item))
		}
		return table
	case map[string]any:
		table := state.CreateTable(0, len(of))
		for name, item := range of {
			table.RawSetString(name, value(state, item))
		}
		return table
	default:
		return lua.LNil
	}
}
