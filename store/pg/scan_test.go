package pg

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"

	"kivuko/exchange"
	"kivuko/exchange/money"
)

type scannedPrice struct{ Crypto, Fiat money.Amount }

type scannedObject struct {
	ID         uuid.UUID
	CustomerID uuid.UUID
	Price      scannedPrice
	URL        string
	TxHash     string
	Alpha2Code string
	ClosedAt   time.Time
}

const scannedColumns = "id customer_id price.crypto price.fiat url tx_hash alpha2_code closed_at"

func TestColumnsAndFieldsAreTheSame(t *testing.T) {
	type joined struct {
		scannedObject
		Total  int
		TxHash []byte // instead of the object's
		Name   string `db:"full_name"`
		Found  bool   `db:"-"`
	}
	for name, c := range map[string]struct {
		row     any
		columns string
		wrong   string
	}{
		"all of them":           {scannedObject{}, scannedColumns, ""},
		"in any order":          {scannedObject{}, "tx_hash alpha2_code closed_at customer_id price.fiat price.crypto url id", ""},
		"an embedded struct":    {joined{}, scannedColumns + " total full_name", ""},
		"one value":             {time.Time{}, "max", ""},
		"a document":            {scannedObject{}, "id customer_id price url tx_hash alpha2_code closed_at", ""},
		"a column too many":     {scannedObject{}, scannedColumns + " rate", "the column rate"},
		"a column too few":      {scannedObject{}, "id customer_id price.crypto price.fiat url alpha2_code closed_at", "the field tx_hash"},
		"half of a struct":      {scannedObject{}, "id customer_id price.crypto url tx_hash alpha2_code closed_at", "the field price.fiat"},
		"too few of the joined": {joined{}, scannedColumns + " total", "the field full_name"},
		"a field of our own":    {joined{}, scannedColumns + " total full_name found", "the column found"},
		"a column twice":        {scannedObject{}, scannedColumns + " id", "two columns id"},
		"two values":            {time.Time{}, "min max", "2 columns"},
	} {
		_, err := match(reflect.TypeOf(c.row), strings.Fields(c.columns))
		if wrong := err != nil && strings.Contains(err.Error(), c.wrong); err == nil && c.wrong != "" || err != nil && (c.wrong == "" || !wrong) {
			t.Errorf("%s: got %v, want %q", name, err, c.wrong)
		}
	}
}

func TestTheOuterOfTwoFieldsIsRead(t *testing.T) {
	type outer struct {
		scannedObject
		TxHash []byte
	}
	fields, err := match(reflect.TypeFor[outer](), strings.Fields(scannedColumns))
	if err != nil {
		t.Fatal(err)
	}
	if got := reflect.TypeFor[outer]().FieldByIndex(fields[5].index).Type; got != reflect.TypeFor[[]byte]() {
		t.Errorf("tx_hash is read into a %s", got)
	}
}

func TestValuesAreRead(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	type status string
	for name, c := range map[string]struct {
		from, want any
		wrong      bool
	}{
		"a time":                {at.In(time.FixedZone("", 3*3600)), at, false},
		"no time":               {nil, time.Time{}, false},
		"a text as a time":      {"infinity", time.Time{}, true},
		"an amount":             {[]byte("12.50 KES"), money.Must(money.KES, "12.5"), false},
		"no amount":             {nil, money.Amount{}, false},
		"an amount of a fee":    {[]byte("0.25 tron"), money.Must(money.TRX, "0.25"), false},
		"too precise an amount": {[]byte("0.001 KES"), money.Amount{}, true},
		"an amount of nothing":  {[]byte("1"), money.Amount{}, true},
		"an amount of no asset": {[]byte("1 XYZ"), money.Amount{}, true},
		"no decimal":            {nil, decimal.Decimal{}, false},
		"a list":                {[]byte("{a,b}"), []status{"a", "b"}, false},
		"no list":               {nil, []status(nil), false},
		"a document":            {[]byte(`{"Network":"tron"}`), struct{ Network exchange.Network }{exchange.Tron}, false},
		"no document":           {nil, []scannedObject(nil), false},
	} {
		to := reflect.New(reflect.TypeOf(c.want)).Elem()
		err := reader(to.Type())(to, c.from)
		if (err != nil) != c.wrong {
			t.Errorf("%s: %v", name, err)
		} else if err == nil && !reflect.DeepEqual(to.Interface(), c.want) && !equalAmounts(to.Interface(), c.want) {
			t.Errorf("%s: got %v, want %v", name, to.Interface(), c.want)
		}
	}
}

func equalAmounts(a, b any) bool {
	x, ok := a.(money.Amount)
	y, same := b.(money.Amount)
	return ok && same && x.Equal(y)
}
