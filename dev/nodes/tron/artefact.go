package tron

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

// artefact is what contracts/compile.mjs writes for one contract.
type artefact struct {
	Contract string     `json:"contract"`
	Compiler string     `json:"compiler"`
	ABI      []abiEntry `json:"abi"`
	Bytecode string     `json:"bytecode"`
}

type abiEntry struct {
	Type            string     `json:"type"`
	Name            string     `json:"name"`
	Inputs          []abiParam `json:"inputs"`
	Outputs         []abiParam `json:"outputs"`
	Anonymous       bool       `json:"anonymous"`
	Constant        bool       `json:"constant"` // compilers before 0.6
	Payable         bool       `json:"payable"`
	StateMutability string     `json:"stateMutability"`
}

type abiParam struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Indexed bool   `json:"indexed"`
}

// readArtefact reads an embedded artefact by its contract's name.
func readArtefact(raw []byte) (*artefact, []byte, error) {
	var a artefact
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, nil, fmt.Errorf("parse contract artefact: %w", err)
	}
	code, err := hex.DecodeString(a.Bytecode)
	if err != nil {
		return nil, nil, fmt.Errorf("parse the bytecode of %s: %w", a.Contract, err)
	}
	return &a, code, nil
}

// message is the ABI as TRON stores it with a contract.
func (a *artefact) message() *core.SmartContract_ABI {
	out := &core.SmartContract_ABI{}
	for _, e := range a.ABI {
		entry := &core.SmartContract_ABI_Entry{
			Name: e.Name, Anonymous: e.Anonymous, Constant: e.Constant, Payable: e.Payable,
			Inputs: abiParams(e.Inputs), Outputs: abiParams(e.Outputs),
			Type:            core.SmartContract_ABI_Entry_EntryType(core.SmartContract_ABI_Entry_EntryType_value[capital(e.Type)]),
			StateMutability: core.SmartContract_ABI_Entry_StateMutabilityType(core.SmartContract_ABI_Entry_StateMutabilityType_value[capital(e.StateMutability)]),
		}
		out.Entrys = append(out.Entrys, entry)
	}
	return out
}

func abiParams(in []abiParam) (out []*core.SmartContract_ABI_Entry_Param) {
	for _, p := range in {
		out = append(out, &core.SmartContract_ABI_Entry_Param{Name: p.Name, Type: p.Type, Indexed: p.Indexed})
	}
	return out
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
