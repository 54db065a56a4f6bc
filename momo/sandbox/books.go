package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The directions of an effect.
const (
	Collection = "collection" // a payer paid our shortcode
	Payout     = "payout"     // we paid a person
	Reversal   = "reversal"   // a collection was reversed
	Funding    = "funding"    // our own money came from outside into an account of ours
	Float      = "float"      // our own money went from the working account to the utility account
)

// Effect is one real movement of money.
type Effect struct {
	Seq       int       `json:"seq"`
	Direction string    `json:"direction"`
	Reference string    `json:"reference"` // the account of a collection, the originator's id of a payout, the receipt of a reversed collection
	Receipt   string    `json:"receipt"`
	Amount    int64     `json:"amount"`           // whole shillings
	Charge    int64     `json:"charge,omitempty"` // the operator's charge to our utility account for a payout
	Phone     string    `json:"phone,omitempty"`
	Time      time.Time `json:"time"`
	RequestID string    `json:"request_id,omitempty"` // CheckoutRequestID or ConversationID
	Account   string    `json:"account,omitempty"`    // of a funding: "working" or "utility"
}

// Prompt is a prompt that the operator accepted, whether it acknowledged it or not.
type Prompt struct {
	CheckoutRequestID string    `json:"checkout_request_id"`
	MerchantRequestID string    `json:"merchant_request_id"`
	Phone             string    `json:"phone"`
	Amount            int64     `json:"amount"`
	Reference         string    `json:"reference"`
	CallbackURL       string    `json:"callback_url"`
	Behaviour         string    `json:"behaviour"`
	CreatedAt         time.Time `json:"created_at"`
	Results           []Result  `json:"results,omitempty"` // the first answer, and a late one
}

// Transfer is a payout, or a movement of float, that the operator accepted, whether it acknowledged it or not.
type Transfer struct {
	Direction                string    `json:"direction,omitempty"` // Float; "" is a payout
	OriginatorConversationID string    `json:"originator_conversation_id"`
	ConversationID           string    `json:"conversation_id"`
	Phone                    string    `json:"phone"`
	Amount                   int64     `json:"amount"`
	ResultURL                string    `json:"result_url"`
	TimeoutURL               string    `json:"timeout_url"`
	Behaviour                string    `json:"behaviour"`
	CreatedAt                time.Time `json:"created_at"`
	Results                  []Result  `json:"results,omitempty"`
}

// Result is how a prompt or payout ended.
type Result struct {
	Code    string    `json:"code"`
	Text    string    `json:"text"`
	Receipt string    `json:"receipt,omitempty"`
	At      time.Time `json:"at"`
}

// Delivery is one callback that was sent, or was about to be sent when the process ended.
type Delivery struct {
	ID     string    `json:"id"`
	URL    string    `json:"url"`
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // of the receiver's response; 0 without one
	Error  string    `json:"error,omitempty"`
}

// Books are the operator's own records, with which tests compare Kivuko's books.
type Books struct {
	Effects    []Effect         `json:"effects"`
	Wallets    map[string]int64 `json:"wallets"` // balance by phone, of every wallet that ever moved money
	Working    int64            `json:"working"` // our account that collections are credited to
	Utility    int64            `json:"utility"` // our account that payouts leave
	Prompts    []Prompt         `json:"prompts"`
	Payouts    []Transfer       `json:"payouts"`
	Moves      []Transfer       `json:"moves"` // of float
	Deliveries []Delivery       `json:"deliveries"`
}

// registration holds the addresses for payments to our number.
type registration struct {
	ConfirmationURL string `json:"confirmation_url"`
	ValidationURL   string `json:"validation_url"`
	ResponseType    string `json:"response_type"`
}

// record is one line of the journal. What belongs together is one line, so that an incomplete write loses all of it or
// nothing.
type record struct {
	Prompt       *Prompt       `json:"prompt,omitempty"`
	Payout       *Transfer     `json:"payout,omitempty"`
	Of           string        `json:"of,omitempty"` // the prompt or payout that Result ends
	Result       *Result       `json:"result,omitempty"`
	Effect       *Effect       `json:"effect,omitempty"`
	Delivery     *Delivery     `json:"delivery,omitempty"`
	Registration *registration `json:"registration,omitempty"`
}

// ledger is the state behind Books. It only changes through apply, which also replays the journal. Its caller holds the
// server's lock.
type ledger struct {
	opening    int64 // of every wallet
	wallets    map[string]int64
	working    int64
	utility    int64
	effects    []Effect
	byReceipt  map[string]int // index into effects
	reversed   map[string]bool
	prompts    map[string]*Prompt
	promptIDs  []string
	open       map[string]string // the open prompt of a phone
	payouts    map[string]*Transfer
	payoutIDs  []string
	deliveries []Delivery
	delivered  map[string]int // index into deliveries
	registered *registration
	journal    *os.File // nil in memory
}

func newLedger(opening, working, utility int64) *ledger {
	return &ledger{
		opening: opening, working: working, utility: utility,
		wallets: map[string]int64{}, byReceipt: map[string]int{}, reversed: map[string]bool{},
		effects: []Effect{}, deliveries: []Delivery{}, prompts: map[string]*Prompt{}, open: map[string]string{}, payouts: map[string]*Transfer{}, delivered: map[string]int{},
	}
}

// journalName is the file in the data directory.
const journalName = "books.jsonl"

// load replays the journal in dir and keeps it open for appending. A last line without its end was cut short by a crash and
// is removed; an earlier broken line is an error, because something else wrote it.
func (l *ledger) load(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, journalName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	whole, err := l.replay(f)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("journal: %w", err), f.Close())
	}
	l.journal = f
	return nil
}

// replay applies all complete lines and returns their length.
func (l *ledger) replay(f io.Reader) (int64, error) {
	r := bufio.NewReader(f)
	var whole int64
	for n := 1; ; n++ {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return 0, err
		}
		var rec record
		if err := json.Unmarshal(bytes.TrimSpace(line), &rec); err != nil {
			return 0, fmt.Errorf("line %d: %w", n, err)
		}
		l.apply(rec)
		whole += int64(len(line))
	}
}

// append writes a record and then applies it. A record that can't be written is not applied.
func (l *ledger) append(rec record) error {
	if l.journal != nil {
		line, err := json.Marshal(rec)
		if err != nil {
			return fmt.Errorf("journal: %w", err)
		}
		if _, err := l.journal.Write(append(line, '\n')); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
	l.apply(rec)
	return nil
}

func (l *ledger) apply(rec record) {
	if p := rec.Prompt; p != nil {
		l.prompts[p.CheckoutRequestID] = p
		l.promptIDs = append(l.promptIDs, p.CheckoutRequestID)
		if b, err := lookup(p.Behaviour); err != nil || !b.hang {
			l.open[p.Phone] = p.CheckoutRequestID
		}
	}
	if p := rec.Payout; p != nil {
		l.payouts[p.OriginatorConversationID] = p
		l.payoutIDs = append(l.payoutIDs, p.OriginatorConversationID)
	}
	if rec.Result != nil {
		if p := l.prompts[rec.Of]; p != nil {
			p.Results = append(p.Results, *rec.Result)
			if l.open[p.Phone] == rec.Of {
				delete(l.open, p.Phone)
			}
		}
		if p := l.payouts[rec.Of]; p != nil {
			p.Results = append(p.Results, *rec.Result)
		}
	}
	if rec.Effect != nil {
		l.move(*rec.Effect)
	}
	if d := rec.Delivery; d != nil {
		l.delivered[d.ID] = len(l.deliveries)
		l.deliveries = append(l.deliveries, *d)
	}
	if rec.Registration != nil {
		l.registered = rec.Registration
	}
}

// move books an effect on both sides.
func (l *ledger) move(e Effect) {
	switch e.Direction {
	case Collection:
		l.wallets[e.Phone] = l.wallet(e.Phone) - e.Amount
		l.working += e.Amount
	case Payout:
		l.wallets[e.Phone] = l.wallet(e.Phone) + e.Amount
		l.utility -= e.Amount + e.Charge
	case Float:
		l.working -= e.Amount
		l.utility += e.Amount
	case Reversal:
		l.wallets[e.Phone] = l.wallet(e.Phone) + e.Amount
		l.working -= e.Amount
		l.reversed[e.Reference] = true
	case Funding:
		if e.Account == "working" {
			l.working += e.Amount
		} else {
			l.utility += e.Amount
		}
	}
	l.byReceipt[e.Receipt] = len(l.effects)
	l.effects = append(l.effects, e)
}

func (l *ledger) wallet(phone string) int64 {
	if balance, ok := l.wallets[phone]; ok {
		return balance
	}
	return l.opening
}

// moved sums what a wallet sent and received since a time, for the daily limit.
func (l *ledger) moved(phone string, since time.Time) int64 {
	var sum int64
	for _, e := range slices.Backward(l.effects) {
		if e.Time.Before(since) {
			break
		}
		if e.Phone == phone {
			sum += e.Amount
		}
	}
	return sum
}

// books returns a copy of the state.
func (l *ledger) books() Books {
	b := Books{
		Effects: slices.Clone(l.effects), Wallets: maps.Clone(l.wallets),
		Working: l.working, Utility: l.utility, Deliveries: slices.Clone(l.deliveries),
		Prompts: make([]Prompt, 0, len(l.promptIDs)), Payouts: make([]Transfer, 0, len(l.payoutIDs)), Moves: []Transfer{},
	}
	for _, id := range l.promptIDs {
		p := *l.prompts[id]
		p.Results = slices.Clone(p.Results)
		b.Prompts = append(b.Prompts, p)
	}
	for _, id := range l.payoutIDs {
		p := *l.payouts[id]
		p.Results = slices.Clone(p.Results)
		if p.Direction == Float {
			b.Moves = append(b.Moves, p)
			continue
		}
		b.Payouts = append(b.Payouts, p)
	}
	return b
}

func (l *ledger) close() error {
	if l.journal == nil {
		return nil
	}
	return l.journal.Close()
}
