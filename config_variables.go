package main

import (
	"reflect"
	"slices"
	"strings"

	"kivuko/workflows"
)

// variable is one field of the configuration, as its tags describe it.
type variable struct {
	name    string // with its prefix
	network string // the network that it belongs to, if any
	field   reflect.StructField
	value   reflect.Value
}

// variables lists all variables with their values, in the order of the fields.
func (c Config) variables() []variable {
	return variablesIn(reflect.ValueOf(c), variablePrefix, "")
}

func variablesIn(part reflect.Value, prefix, network string) []variable {
	var out []variable
	for i := range part.NumField() {
		f := part.Type().Field(i)
		if inner, ok := f.Tag.Lookup("envPrefix"); ok {
			out = append(out, variablesIn(part.Field(i), prefix+inner, f.Tag.Get("network"))...)
			continue
		}
		out = append(out, variable{name: prefix + f.Tag.Get("env"), network: network, field: f, value: part.Field(i)})
	}
	return out
}

// kindOf splits the name of a process: chain-tron is a chain, of the network tron. Others have no network.
func kindOf(process string) (kind, network string) {
	kind, network, _ = strings.Cut(process, "-")
	if kind != "chain" && kind != "signer" {
		return process, ""
	}
	return kind, network
}

// reads reports whether a kind of process is in a list of tags.
func reads(list, kind string) bool {
	listed := strings.Fields(list)
	queue := slices.Contains([]string{workflows.QueueFlows, workflows.QueueMomo, workflows.QueueWebhooks, "chain", "signer"}, kind)
	return slices.Contains(listed, "all") || slices.Contains(listed, kind) || (queue && slices.Contains(listed, "workers"))
}

// readBy reports whether a process reads the variable, and neededBy whether the process needs it to start.
func (v variable) readBy(process string) bool { return v.of(process, "for") }

func (v variable) neededBy(process string) bool { return v.of(process, "need") }

func (v variable) of(process, tag string) bool {
	kind, network := kindOf(process)
	return reads(v.field.Tag.Get(tag), kind) && (v.network == "" || network == "" || v.network == network)
}

// demands reports whether production has a rule for the variable: required, off or https.
func (v variable) demands(what string) bool {
	rule, _, _ := strings.Cut(v.field.Tag.Get("production"), ",")
	return slices.Contains(strings.Fields(rule), what) && !strings.Contains(rule, "unless")
}

func (v variable) empty() bool {
	return v.value.IsZero() || (v.value.Kind() == reflect.Slice || v.value.Kind() == reflect.Map) && v.value.Len() == 0
}

// checkTags checks the tags' rules for the variables that a process reads.
func (c Config) checkTags(n *need, process string) {
	for _, v := range c.variables() {
		if !v.readBy(process) {
			continue
		}
		if v.neededBy(process) {
			n.rule(!v.empty(), v.name+" must be set")
		}
		if c.Mode != Production {
			continue
		}
		n.rule(!v.demands("required") || v.neededBy(process) || !v.empty(), v.name+" must be set in production")
		n.rule(!v.demands("off") || v.empty(), v.name+" must be off in production")
		n.rule(!v.demands("https") || v.empty() || strings.HasPrefix(v.value.String(), "https://"), v.name+" must be https in production")
		switch key := v.value.Interface().(type) {
		case Keyring:
			n.rule(!key.development(), v.name+" holds a development key")
		case HexKey:
			n.rule(!developmentKey(key), v.name+" is a development key")
		}
	}
}
