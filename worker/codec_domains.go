package worker

import (
	"slices"
	"strings"
)

// Domains are the circles of processes that trust each other with payloads: the flows with the API, and each kind of worker that has
// a way out. A key's name begins with its domain and a dot.
const (
	DomainFlows    = "flows"
	DomainMomo     = "momo"
	DomainChain    = "chain"
	DomainSigner   = "signer"
	DomainWebhooks = "webhooks"
)

// Domains lists them, that of the flows first.
func Domains() []string {
	return []string{DomainFlows, DomainMomo, DomainChain, DomainSigner, DomainWebhooks}
}

// DomainOf is the domain of a queue.
func DomainOf(queue string) string {
	name, _, _ := strings.Cut(queue, "-")
	if !slices.Contains(Domains(), name) {
		return DomainFlows
	}
	return name
}

// InDomain reports whether a key is one of a domain.
func (k Key) InDomain(domain string) bool { return strings.HasPrefix(k.ID, domain+".") }

// foreign reports whether a key is of a domain that writes nothing in another one: only its own and the flows, which hand it its
// work, write there. A key of no domain writes everywhere, as on a developer's machine.
func foreign(key, domain string) bool {
	of, _, _ := strings.Cut(key, ".")
	return domain != "" && of != domain && of != DomainFlows && slices.Contains(Domains(), of)
}

// keyOf is the first key of a domain. Where none is of that domain, as on a developer's machine, it is the one that encrypts.
func (c *Codec) keyOf(domain string) string {
	for _, id := range c.order {
		if (Key{ID: id}).InDomain(domain) {
			return id
		}
	}
	return c.current
}
