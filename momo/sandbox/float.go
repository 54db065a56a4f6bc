package sandbox

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
)

// handleFloat accepts a movement of our own money from the working account to the utility account (B2C Account Top Up). It
// ignores the caller's ids: the same request twice is two movements.
func (s *Server) handleFloat(w http.ResponseWriter, f form) {
	amount, whole := f.amount()
	b := s.pick(OpFloat, "", amount)
	if b.refuse != nil {
		refuse(w, *b.refuse)
		return
	}
	if field := s.checkFloat(f, whole); field != "" {
		invalidField(w, field)
		return
	}
	if !s.initiatorFits(f["Initiator"], f["SecurityCredential"]) {
		b, _ = lookup("credential_wrong")
	}
	f["OriginatorConversationID"] = newRequestID() // the operator's own, whatever the caller sends
	p, _ := s.acceptTransfer(f, b, amount, Float)
	done := make(chan struct{})
	s.start(func() {
		defer close(done)
		s.runPayout(p.OriginatorConversationID)
	})
	if b.early {
		<-done
	}
	acknowledge(w, b.ack, OpFloat, conversationAck(p.ConversationID, p.OriginatorConversationID))
}

// checkFloat returns the first field that breaks a rule (portal, B2C Account Top Up).
func (s *Server) checkFloat(f form, wholeAmount bool) string {
	switch {
	case f["Initiator"] == "":
		return "Initiator"
	case f["SecurityCredential"] == "":
		return "SecurityCredential"
	case f["CommandID"] != "BusinessPayToBulk":
		return "CommandID"
	case f["SenderIdentifierType"] != "4":
		return "SenderIdentifierType"
	case f["RecieverIdentifierType"] != "4":
		return "RecieverIdentifierType"
	case !wholeAmount:
		return "Amount"
	case f["PartyA"] != s.cfg.Shortcode:
		return "PartyA"
	case f["PartyB"] != s.cfg.PayoutShortcode:
		return "PartyB"
	case len(f["Remarks"]) < 2 || len(f["Remarks"]) > 100:
		return "Remarks"
	case !s.validAddress(f["QueueTimeOutURL"]):
		return "QueueTimeOutURL"
	case !s.validAddress(f["ResultURL"]):
		return "ResultURL"
	}
	return ""
}

// floatParameters are the parameters in the result of a movement of float.
func floatParameters(p Transfer, last Result, working int64) []keyed {
	return []keyed{
		{"DebitAccountBalance", fmt.Sprintf("Working Account|KES|%[1]d.00|%[1]d.00|0.00|0.00", working)},
		{"Amount", json.Number(fmt.Sprintf("%d.00", p.Amount))},
		{"TransCompletedTime", json.Number(last.At.In(eat).Format(layoutStamp))},
		{Key: "DebitPartyCharges"},
		{"ReceiverPartyPublicName", "Sandbox utility"},
		{"Currency", "KES"},
	}
}

// unregistered are the endings of magic numbers without an owner: those for which payouts are refused.
var unregistered = map[string]bool{"52": true, "53": true}

var firstNames = []string{"ACHIENG", "BARAKA", "CHEBET", "DAUDI", "ESTHER", "FATUMA", "GITAU", "HALIMA"}

// handlePayee returns the owner of a number, with the surnames masked (B2C Hakikisha).
func (s *Server) handlePayee(w http.ResponseWriter, _ form, body []byte) {
	var q struct {
		Header struct {
			RequestID string `json:"requestID"`
			Timestamp string `json:"timestamp"`
		} `json:"header"`
		Body struct {
			MSISDN    string `json:"msisdn"`
			Shortcode string `json:"shortcode"`
		} `json:"body"`
	}
	status, says := http.StatusBadRequest, map[string]string{}
	phone := ""
	if err := json.Unmarshal(body, &q); err == nil {
		phone = q.Body.MSISDN
	}
	switch {
	case q.Header.RequestID == "" || q.Header.Timestamp == "" || (q.Body.Shortcode != s.cfg.PayoutShortcode && q.Body.Shortcode != s.cfg.Shortcode):
		says["message"] = "Bad Request"
	case !validPhone(phone):
		says["message"] = "Bad Request - Invalid phone number"
	case phone[:10] == magicPrefix && unregistered[phone[10:]]:
		says["message"] = "The customer does not exist."
	default:
		h := fnv.New32a()
		_, _ = h.Write([]byte(phone))
		status, says = http.StatusOK, map[string]string{"firstName": firstNames[int(h.Sum32())%len(firstNames)], "middleName": "M******", "lastName": "W******"}
	}
	word := "Success"
	if status != http.StatusOK {
		word = "Error"
	}
	reply(w, status, map[string]any{
		"header": map[string]string{"requestID": q.Header.RequestID, "timestamp": q.Header.Timestamp, "status": fmt.Sprint(status), "message": word}, "body": says,
	})
}
