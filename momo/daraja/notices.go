package daraja

import "kivuko/momo"

// Name is the operator's name on payments and on their breaker.
const Name = "daraja"

// Notices reads and answers what the operator posts. It needs no secrets.
type Notices struct{}

// Answer returns the body of an answer (portal, C2B result codes). The zero code acknowledges everything else too.
func (Notices) Answer(a momo.Answer) []byte {
	switch a {
	case momo.UnknownAccount:
		return []byte(`{"ResultCode":"C2B00012","ResultDesc":"Rejected"}`)
	case momo.WrongAmount:
		return []byte(`{"ResultCode":"C2B00013","ResultDesc":"Rejected"}`)
	case momo.Accept:
	}
	return []byte(`{"ResultCode":"0","ResultDesc":"Accepted"}`)
}

var _ momo.Operator = (*Client)(nil)
