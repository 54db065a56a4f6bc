package demo

import (
	"bytes"
	"testing"

	"github.com/google/uuid"

	"kivuko/bank"
	"kivuko/exchange"
	"kivuko/exchange/money"
)

// The bank's statement continues the balance before it by one line, which names the deposit.
func TestStatementNamesTheDeposit(t *testing.T) {
	o := deskDeposit{ID: uuid.New(), Reference: "KVDM7PT6PMT6", Fiat: "250000.00"}
	content, err := camt("0100200300", o, money.Must(money.KES, "7"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []exchange.StatementLine
	st, err := bank.Read(bytes.NewReader(content), exchange.StatementCAMT, func(l exchange.StatementLine) error {
		lines = append(lines, l)
		return nil
	})
	if err != nil || st.Opening.String() != "7.00" || st.Closing.String() != "250007.00" {
		t.Fatalf("%+v, %v", st, err)
	}
	if len(lines) != 1 || lines[0].Reference != o.Reference || lines[0].Amount.String() != o.Fiat || lines[0].Side != exchange.SideCredit {
		t.Errorf("the lines are %+v", lines)
	}
}
