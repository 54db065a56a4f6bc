package api

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"kivuko/exchange"
	"kivuko/exchange/money"
	"kivuko/store/storetest"
)

func statementOf(merchant person, query string) string {
	return "/api/v1/auth/merchants/" + merchant.ID.String() + "/statement?" + query
}

// A merchant reads what happened to its shillings, as an object and as a table; other merchants don't.
func TestMerchantsReadTheirStatement(t *testing.T) {
	e := start(t)
	merchant := e.person(exchange.RoleVendor)
	sub, rival, officer := e.person(exchange.RoleSubvendor, merchant.ID), e.person(exchange.RoleVendor), e.person(exchange.RoleOTCOfficer)
	late := e.pays(e.person(exchange.RoleCustomer), e.offer(merchant, e.wallet(merchant)).ID, "1295", true).Exception
	credit := "/api/v1/auth/payment-exceptions/" + late.ID.String() + "/credit"
	e.do(post, credit, map[string]any{"merchant_id": merchant.ID, "note": "theirs"}, e.person(exchange.RoleTreasury).auth(), freshKey()).want(http.StatusOK)
	storetest.Shillings(t, e.store, merchant.ID, money.Must(money.KES, "5"))
	today := exchange.KenyanDay(time.Now())
	around := "from_day=" + today.AddDate(0, 0, -1).Format(time.DateOnly) + "&to_day=" + today.AddDate(0, 0, 2).Format(time.DateOnly)
	for _, who := range []person{merchant, sub, officer} {
		st := e.do(get, statementOf(merchant, around), nil, who.auth()).want(http.StatusOK).object()
		if st["opening_balance"] != "0.00" || st["closing_balance"] != "1300.00" || st["credits"] != "1300.00" || st["total"] != 2.0 {
			t.Errorf("the %s reads %v", who.Role, st)
		}
		first := st["movements"].([]any)[0].(map[string]any)
		if first["reason"] != "exception" || first["object_id"] != late.ID.String() || first["reference"] != late.Receipt || first["balance"] != "1295.00" || first["asset"] != nil {
			t.Errorf("the %s reads %v", who.Role, first)
		}
	}
	if st := e.do(get, statementOf(rival, ""), nil, rival.auth()).want(http.StatusOK).object(); !strings.HasSuffix(st["from_day"].(string), "-01") || st["total"] != 0.0 || len(st["movements"].([]any)) != 0 {
		t.Errorf("a statement without movements is %v", st)
	}
	e.do(get, statementOf(merchant, ""), nil, rival.auth()).refused(exchange.CodeNotFound)
	e.do(get, statementOf(officer, ""), nil, officer.auth()).refused(exchange.CodeNotFound)
	e.do(get, statementOf(merchant, "from_day=2026-02-01&to_day=2026-02-01"), nil, merchant.auth()).blames("query/to_day out_of_range")
	e.do(get, statementOf(merchant, "from_day=2024-02-01&to_day=2026-02-01&format=pdf"), nil, merchant.auth()).blames("query/format enum", "query/to_day out_of_range")
	past := e.do(get, statementOf(merchant, "to_day=2024-03-01"), nil, merchant.auth()).want(http.StatusOK).object()
	if past["from_day"] != "2024-02-01" || past["closing_balance"] != "0.00" {
		t.Errorf("a month before is %v", past)
	}

	table := e.do(get, statementOf(merchant, around+"&format=csv"), nil, merchant.auth()).want(http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(string(table.body))).ReadAll()
	if err != nil || len(rows) != 5 || rows[1][2] != "opening_balance" || rows[4][2] != "closing_balance" || rows[4][9] != "1300.00" || rows[4][10] != "1300.00" {
		t.Fatalf("%v, %v", rows, err)
	}
	if r := rows[2]; r[1] == "" || r[2] != "exception" || r[5] != late.Receipt || r[9] != "1295.00" {
		t.Errorf("the row is %v", r)
	}
	if h := table.header; !strings.HasPrefix(h.Get("Content-Type"), "text/csv") || !strings.HasPrefix(h.Get("Content-Disposition"), `attachment; filename=statement-`) || h.Get("Cache-Control") != "no-store" {
		t.Errorf("the headers are %v", h)
	}
}

// No text from outside is a formula in a spreadsheet, and every amount is a plain number.
func TestTablesHaveNoFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"=1+1": "'=1+1", "+254": "'+254", "-2": "'-2", "@SUM(A1)": "'@SUM(A1)", "\t=1": "'\t=1", "\r=1": "'\r=1", "＝1": "'＝1", "UKL0000001": "UKL0000001", "": "", "a=b": "a=b",
	} {
		if got := csvText(text); got != want {
			t.Errorf("%q is written as %q", text, got)
		}
	}
	s := &sentStatement{form: &csvStatement{}}
	kes := money.Must(money.KES, "10")
	err := s.form.movement(&s.ready, exchange.StatementMovement{Reason: exchange.ReasonSale, Reference: `=HYPERLINK("https://example.com","x")`, Debit: kes, Credit: money.Zero(money.KES), Balance: kes})
	if err != nil || !strings.Contains(s.ready.String(), `,"'=HYPERLINK(""https://example.com"",""x"")",`) || !strings.HasSuffix(s.ready.String(), "10.00,0.00,10.00\r\n") {
		t.Errorf("%q, %v", s.ready.String(), err)
	}
}

// cutShort is a statement of which the second batch of movements can't be read, or does not lead to the end.
func cutShort(fault error) *sentStatement {
	kes := money.Must(money.KES, "1")
	st := exchange.MerchantStatement{Opening: money.Zero(money.KES), Credits: kes, Debits: money.Zero(money.KES), Closing: kes.Add(kes), Movements: 2}
	batches := 0
	return &sentStatement{form: &jsonStatement{}, st: st, balance: st.Opening, cancel: func() {}, more: func(int64, money.Amount) ([]exchange.StatementMovement, error) {
		if batches++; batches > 1 {
			return nil, fault
		}
		return []exchange.StatementMovement{{Line: 1, Credit: kes, Debit: money.Zero(money.KES), Balance: kes}}, nil
	}}
}

// A statement that can't be read to its end, or that does not lead to its closing balance, is never sent as a whole one.
func TestAStatementThatBreaksOffIsNotWhole(t *testing.T) {
	for _, fault := range []error{errors.New("the database is away"), nil} {
		t.Run(fmt.Sprint(fault), func(t *testing.T) {
			app := fiber.New(fiber.Config{DisableStartupMessage: true})
			app.Get("/", func(c *fiber.Ctx) error {
				s := cutShort(fault)
				if err := s.begin(); err != nil {
					return err
				}
				c.Context().SetBodyStream(s, -1)
				return nil
			})
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			served := make(chan error, 1)
			go func() { served <- app.Listener(listener) }()
			answer, err := http.Get("http://" + listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if err == nil || !strings.Contains(string(body), `"movements":[{`) || strings.HasSuffix(string(body), "]}") {
				t.Errorf("it was sent as %q, %v", body, err)
			}
			if err := errors.Join(app.Shutdown(), <-served); err != nil {
				t.Error(err)
			}
		})
	}
}
