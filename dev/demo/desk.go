package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"kivuko/dev/client"
	"kivuko/exchange"
)

// deskTime bounds the desk's job: a line of a statement is matched within a minute, and the crypto of a withdrawal has to be final.
const deskTime = 5 * time.Minute

// taken is how much USDT the merchant withdraws, deskRate the price of one in shillings.
const (
	taken    = "100"
	deskRate = "128.755"
)

// newRest is how long a new destination rests on this stack, so that one can watch it. The product begins with a day. Two officers
// agree on it, as in production; above restAbove transfers rest too.
const (
	newRest   = 10 * time.Second
	restAbove = "200000"
)

const (
	limitsPath   = "/api/v1/auth/limits"
	ratesPath    = "/api/v1/auth/pricing/fx-rates"
	changesPath  = "/api/v1/auth/approvals/changes/"
	walletsPath  = "/api/v1/auth/wallets?page_id=1&page_size=1"
	merchantName = "Baraka Exchange"
)

// desk is who plays the OTC desk. No one of them could do the work of two.
type desk struct {
	Stack
	merchant, officer, treasury, colleague, admin *client.Client
	began                                         time.Time
}

// Desk has a merchant pay shillings in by bank and take crypto out as shillings, at once, and prints each step.
func Desk(ctx context.Context, w Stack) error {
	ctx, cancel := context.WithTimeout(ctx, deskTime)
	defer cancel()
	d := desk{Stack: w, began: time.Now()}
	if err := d.logIn(ctx); err != nil {
		return err
	}
	w.Say("\nThe OTC desk: a merchant deposits KES %s at the bank, and withdraws %s USDT as shillings to a phone.", deposited, taken)
	w.Say("Baraka is the merchant. Wanjiku is an OTC officer, Njeri and Otieno are of the treasury, and there is the admin.")
	group, inner := errgroup.WithContext(ctx)
	for name, play := range map[string]func(context.Context) error{"deposit": d.deposit, "withdrawal": d.withdrawal} {
		group.Go(func() error {
			if err := play(inner); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

func (d *desk) logIn(ctx context.Context) (err error) {
	for email, c := range map[string]**client.Client{
		VendorEmail: &d.merchant, DeskEmail: &d.officer, TreasuryEmail: &d.treasury, SecondTreasuryEmail: &d.colleague,
	} {
		if *c, err = d.caller().Login(ctx, email, Password); err != nil {
			return err
		}
	}
	d.admin, err = d.caller().Login(ctx, d.AdminEmail, d.AdminPass)
	return err
}

// tells returns what prints the steps of a job.
func (d *desk) tells(job string) func(format string, args ...any) { return d.lines(d.began, job) }

// lines returns what prints the steps of a job or of a network, with the time since the job began.
func (w Stack) lines(began time.Time, name string) func(format string, args ...any) {
	return func(format string, args ...any) {
		w.Say("  %5.1f s  %-10s  %s", time.Since(began).Seconds(), name, fmt.Sprintf(format, args...))
	}
}

// verb carries out a verb on a deposit or a withdrawal. A call whose answer was lost is repeated with its key, and does nothing twice.
func verb(ctx context.Context, c *client.Client, object, name string, in map[string]any, out any) error {
	if in == nil {
		in = map[string]any{}
	}
	if err := c.Post(ctx, object+"/"+name, "demo-"+name+"-"+uuid.NewString(), in, out); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// agreed has the admin propose terms and Njeri agree, where the terms need two. It reports whether they did.
func (d *desk) agreed(ctx context.Context, method, path string, in map[string]any) (bool, error) {
	var waits struct {
		Changes []change `json:"changes"`
	}
	if err := d.admin.Do(ctx, method, path, "demo-"+uuid.NewString(), in, &waits); err != nil {
		return false, err
	}
	var err error
	for _, c := range waits.Changes {
		err = errors.Join(err, d.treasury.Post(ctx, changesPath+c.ID.String()+"/confirm", "demo-confirm-"+c.ID.String(), map[string]any{"digest": c.Digest}, nil))
	}
	return len(waits.Changes) > 0, err
}

// terms are what a withdrawal of crypto needs: two people's word on what a USDT is worth, and a rate. New destinations rest less here.
func (d *desk) terms(ctx context.Context, say func(string, ...any)) error {
	var now struct {
		Rest struct {
			Seconds int64 `json:"rest_seconds"`
		} `json:"new_destinations"`
	}
	if err := d.admin.Get(ctx, limitsPath, &now); err != nil {
		return err
	}
	if seconds := int64(newRest / time.Second); now.Rest.Seconds != seconds {
		if _, err := d.agreed(ctx, http.MethodPatch, limitsPath, map[string]any{
			"valuations":       map[string]any{"USDT": deskRate},
			"new_destinations": map[string]any{"rest_seconds": seconds, "rest_above": restAbove},
		}); err != nil {
			return fmt.Errorf("the house's limits: %w", err)
		}
		say("the admin and Njeri agree that a USDT is worth KES %s, and that here a new destination rests %s, not %s", deskRate, newRest,
			time.Duration(now.Rest.Seconds)*time.Second)
	}
	both, err := d.agreed(ctx, http.MethodPost, ratesPath, map[string]any{"base": "USDT", "quote": "KES", "mid": deskRate})
	if err != nil {
		return fmt.Errorf("the rate: %w", err)
	}
	who := "the admin enters"
	if both {
		who = "the admin and Njeri agree on"
	}
	say("%s the rate of KES %s per USDT", who, deskRate)
	return nil
}

// movement is one movement of the merchant's statement.
type movement struct {
	ObjectID *uuid.UUID `json:"object_id"`
	Credit   string     `json:"credit"`
	Debit    string     `json:"debit"`
	Balance  string     `json:"balance"`
}

// onStatement finds what an object did to the merchant's shillings, on the statement that the merchant reads.
func (d *desk) onStatement(ctx context.Context, merchant, object uuid.UUID) (found []movement, err error) {
	var st struct {
		Movements []movement `json:"movements"`
	}
	today := exchange.DateOf(time.Now())
	path := fmt.Sprintf("/api/v1/auth/merchants/%s/statement?from_day=%s&to_day=%s", merchant, today.Format(time.DateOnly), today.AddDate(0, 0, 1).Format(time.DateOnly))
	if err := d.merchant.Get(ctx, path, &st); err != nil {
		return nil, err
	}
	for _, l := range st.Movements {
		if l.ObjectID != nil && *l.ObjectID == object {
			found = append(found, l)
		}
	}
	return found, nil
}
