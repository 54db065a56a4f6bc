package demo

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

// deposited is what the merchant pays in at the bank, in shillings.
const deposited = "250000"

const depositsPath = "/api/v1/auth/otc/deposits"

// deskDeposit has the fields of an OTC deposit that the demo reads.
type deskDeposit struct {
	ID        uuid.UUID  `json:"id"`
	Merchant  uuid.UUID  `json:"merchant_id"`
	Status    string     `json:"status"`
	Detail    string     `json:"status_detail"`
	Reference string     `json:"payment_reference"`
	Line      *uuid.UUID `json:"statement_line_id"`
	ProofURL  string     `json:"proof_url"`
	ProofSum  string     `json:"proof_file_sha256"`
	Fiat      string     `json:"fiat_amount"`
	BankID    uuid.UUID  `json:"bank_account_id"`
	PayTo     struct {
		Bank   string `json:"bank_name"`
		Number string `json:"account_number"`
	} `json:"pay_to"`
}

// deposit goes from a draft to the audit. Four people carry it, and a fifth brings the bank's statement in.
func (d *desk) deposit(ctx context.Context) error {
	say := d.tells("Deposit")
	var o deskDeposit
	in := map[string]any{
		"method": "bank", "requested_asset": "KES", "fiat_amount": deposited, "sender_account_name": merchantName, "sender_bank_name": "Savings Bank",
		"sender_account_number_last4": "4321",
	}
	if err := d.merchant.Post(ctx, depositsPath+"/draft", "demo-deposit-"+uuid.NewString(), in, &o); err != nil {
		return err
	}
	path := depositsPath + "/" + o.ID.String()
	say("Baraka drafts deposit %s: KES %s by bank, for shillings", o.ID, o.Fiat)
	if err := verb(ctx, d.merchant, path, "submit", nil, &o); err != nil {
		return err
	}
	say("%s: to be paid to account %s at %s, with the reference %s", o.Status, o.PayTo.Number, o.PayTo.Bank, o.Reference)
	pdf := slip("Transfer slip", "From: "+merchantName+", account ending in 4321", "To: account "+o.PayTo.Number+" at "+o.PayTo.Bank,
		"Amount: KES "+o.Fiat, "Reference: "+o.Reference, "Date: "+today())
	account, bank := o.PayTo.Number, o.BankID
	if err := d.merchant.Upload(ctx, path+"/proof", "", "transfer-slip.pdf", pdf, &o); err != nil {
		return fmt.Errorf("the proof: %w", err)
	}
	say("Baraka has paid at the bank, and uploads the slip as proof: a PDF with the SHA-256 %s…", o.ProofSum[:16])
	statement, err := d.statement(ctx, bank, account, o)
	if err != nil {
		return fmt.Errorf("the bank's statement: %w", err)
	}
	say("Otieno brings the bank's statement in, as CAMT.053: one line, KES %s with that reference", o.Fiat)
	if err := d.witnessed(ctx, path, &o); err != nil {
		return err
	}
	say("the line is matched with the deposit, and the money is booked into flight; nobody has it yet")
	if err := d.decide(ctx, path, &o, say); err != nil {
		return err
	}
	return d.depositIsBooked(ctx, path, o, statement, say)
}

func today() string { return exchange.DateOf(time.Now()).Format(time.DateOnly) }

// witnessed waits until the statement's line is matched with the deposit.
func (d *desk) witnessed(ctx context.Context, path string, o *deskDeposit) error {
	return patiently(ctx, "the statement's line of the deposit", func() (bool, error) {
		err := d.officer.Get(ctx, path, o)
		return err == nil && o.Line != nil, err
	})
}

// decide is what an OTC officer, the treasury and an auditor do, each with own eyes.
func (d *desk) decide(ctx context.Context, path string, o *deskDeposit, say func(string, ...any)) error {
	if err := verb(ctx, d.officer, path, "claim", nil, o); err != nil {
		return err
	}
	say("Wanjiku claims it from the queue, so that no other officer works on it")
	in := map[string]any{"received_amount": deposited, "value_date": today(), "statement_line_id": o.Line}
	if err := verb(ctx, d.officer, path, "confirm", in, o); err != nil {
		return err
	}
	say("%s: Wanjiku and the bank's line say the same, KES %s of %s", o.Status, deposited, today())
	if err := verb(ctx, d.treasury, path, "settle", nil, o); err != nil {
		return err
	}
	say("%s: Njeri settles it", o.Status)
	if err := verb(ctx, d.admin, path, "audit", nil, o); err != nil {
		return err
	}
	say("%s: the admin, who had no other part in it, has looked at all of it", o.Status)
	return nil
}

// depositIsBooked checks what others than the deposit say: the merchant's statement, the audit log, and the bank's closing balance.
func (d *desk) depositIsBooked(ctx context.Context, path string, o deskDeposit, statement uuid.UUID, say func(string, ...any)) error {
	lines, err := d.onStatement(ctx, o.Merchant, o.ID)
	if err != nil {
		return err
	}
	want := money.Must(money.KES, deposited).String()
	if len(lines) != 1 || lines[0].Credit != want {
		return fmt.Errorf("the merchant's statement has %+v, not one credit of KES %s", lines, want)
	}
	say("Baraka's statement has it once: KES %s came, the balance is KES %s", lines[0].Credit, lines[0].Balance)
	var trail struct {
		Audit []struct {
			Actor string `json:"actor"`
		} `json:"audit"`
	}
	if err := d.admin.Get(ctx, path+"/audit-trail?page_size=100", &trail); err != nil {
		return err
	}
	people := map[string]bool{}
	for _, a := range trail.Audit {
		if who, human := strings.CutPrefix(a.Actor, "user:"); human {
			people[who] = true
		}
	}
	say("its audit trail has %d records, by %d people: GET /otc/deposits/%s/audit-trail", len(trail.Audit), len(people), o.ID)
	return d.balanced(ctx, statement, say)
}

// balanced waits until the statement is compared with the ledger, and says what the comparison found.
func (d *desk) balanced(ctx context.Context, statement uuid.UUID, say func(string, ...any)) error {
	var st struct {
		Status     string `json:"status"`
		Closing    string `json:"closing_balance"`
		Difference string `json:"difference"`
	}
	err := patiently(ctx, "the comparison of the bank's statement", func() (bool, error) {
		err := d.colleague.Get(ctx, treasury+"/bank-statements/"+statement.String(), &st)
		return err == nil && st.Status == string(exchange.StatementCompared), err
	})
	if err != nil {
		return err
	}
	say("the bank's closing balance is KES %s; its difference from the ledger is KES %s", st.Closing, st.Difference)
	return nil
}

// statement has Otieno bring in the bank's statement of the deposit, and returns its id.
func (d *desk) statement(ctx context.Context, bank uuid.UUID, number string, o deskDeposit) (uuid.UUID, error) {
	var last struct {
		Statements []struct {
			Closing string `json:"closing_balance"`
		} `json:"bank_statements"`
	}
	if err := d.colleague.Get(ctx, treasury+"/bank-statements?page_id=1&page_size=1&bank_account_id="+bank.String(), &last); err != nil {
		return uuid.Nil, err
	}
	opening := money.Zero(money.KES)
	if len(last.Statements) > 0 {
		var err error
		if opening, err = money.Parse(money.KES, last.Statements[0].Closing); err != nil {
			return uuid.Nil, err
		}
	}
	content, err := camt(number, o, opening)
	if err != nil {
		return uuid.Nil, err
	}
	var file, made account
	if err := d.colleague.Upload(ctx, "/api/v1/auth/files", string(exchange.FileBankStatement), "statement.xml", content, &file); err != nil {
		return uuid.Nil, err
	}
	in := map[string]any{"bank_account_id": bank, "file_id": file.ID}
	return made.ID, d.colleague.Post(ctx, treasury+"/bank-statements", "demo-statement-"+file.ID.String(), in, &made)
}

// camt is the bank's statement of a day on which the money of a deposit came.
func camt(number string, o deskDeposit, opening money.Amount) ([]byte, error) {
	came, err := money.Parse(money.KES, o.Fiat)
	if err != nil {
		return nil, err
	}
	var file bytes.Buffer
	err = camtForm.Execute(&file, map[string]string{
		"ID": "STMT-" + o.Reference, "Now": time.Now().UTC().Format(time.RFC3339), "Day": today(), "Account": number, "Opening": opening.String(),
		"Closing": opening.Add(came).String(), "Amount": o.Fiat, "Bank": "FT" + strings.ToUpper(strings.ReplaceAll(o.ID.String(), "-", "")), "Reference": o.Reference,
		"Party": merchantName,
	})
	return file.Bytes(), err
}

var camtForm = template.Must(template.New("camt.053").Parse(`<?xml version="1.0" encoding="UTF-8"?>
<Document xmlns="urn:iso:std:iso:20022:tech:xsd:camt.053.001.08">
  <BkToCstmrStmt>
    <GrpHdr><MsgId>{{.ID}}</MsgId><CreDtTm>{{.Now}}</CreDtTm></GrpHdr>
    <Stmt>
      <Id>{{.ID}}</Id>
      <CreDtTm>{{.Now}}</CreDtTm>
      <Acct><Id><Othr><Id>{{.Account}}</Id></Othr></Id><Ccy>KES</Ccy></Acct>
      <Bal><Tp><CdOrPrtry><Cd>OPBD</Cd></CdOrPrtry></Tp><Amt Ccy="KES">{{.Opening}}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>{{.Day}}</Dt></Dt></Bal>
      <Bal><Tp><CdOrPrtry><Cd>CLBD</Cd></CdOrPrtry></Tp><Amt Ccy="KES">{{.Closing}}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Dt><Dt>{{.Day}}</Dt></Dt></Bal>
      <Ntry>
        <NtryRef>1</NtryRef><Amt Ccy="KES">{{.Amount}}</Amt><CdtDbtInd>CRDT</CdtDbtInd><Sts><Cd>BOOK</Cd></Sts>
        <BookgDt><Dt>{{.Day}}</Dt></BookgDt><ValDt><Dt>{{.Day}}</Dt></ValDt><AcctSvcrRef>{{.Bank}}</AcctSvcrRef>
        <NtryDtls><TxDtls>
          <Refs><EndToEndId>{{.Reference}}</EndToEndId></Refs>
          <RltdPties><Dbtr><Pty><Nm>{{.Party}}</Nm></Pty></Dbtr></RltdPties>
        </TxDtls></NtryDtls>
      </Ntry>
    </Stmt>
  </BkToCstmrStmt>
</Document>
`))
