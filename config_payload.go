package main

import (
	"slices"
	"strings"

	"kivuko/worker"
)

// checkPayloadKeys checks that a process has the payload keys of its own domain. The flows have those of all domains, because they hand
// work to all, and so has the codec, which shows all. Any other process has no key of another domain, so that it can read only what it
// is given.
func (c Config) checkPayloadKeys(n *need, kind string) {
	keys := payloadKeys(c)
	if c.Mode != Production || len(keys) == 0 || kind == "codec" {
		return
	}
	if reads("flows resume", kind) {
		for _, d := range worker.Domains() {
			n.rule(slices.ContainsFunc(keys, func(k worker.Key) bool { return k.InDomain(d) }),
				"KIVUKO_TEMPORAL_PAYLOAD_KEYS must have a key whose name begins with "+d+".")
		}
		n.rule(keys[0].InDomain(worker.DomainFlows), "KIVUKO_TEMPORAL_PAYLOAD_KEYS must begin with a key of the domain "+worker.DomainFlows)
		return
	}
	own := worker.DomainOf(kind)
	var strange []string
	for _, k := range keys {
		if !k.InDomain(own) {
			strange = append(strange, k.ID)
		}
	}
	n.rule(len(strange) == 0, "KIVUKO_TEMPORAL_PAYLOAD_KEYS must have only keys whose names begin with "+own+". here, not "+strings.Join(strange, ", "))
}
