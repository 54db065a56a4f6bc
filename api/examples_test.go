package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

const examplesFile = "examples.json"

// withoutExample are the operations that have no example, with the reason.
var withoutExample = map[string]string{
	"docs": "a page", "docsAsset": "a file", "errorPage": "a page", "metrics": "a text", "peoplePage": "a page", "openapi": "this document",
	"uploadFile": "a form", "proveOTCDeposit": "a form", "getFileContent": "a file", "openFileLink": "a file", "getOTCProof": "a file",
}

// exampleTests are the tests that give the examples. An operation's is the richest of the first test with a good one.
func exampleTests() []func(*testing.T) {
	return []func(*testing.T){
		TestRegisterLoginRefresh, TestOffersLive, TestSendWithinOurCustody, TestTwoOfficersRaiseTheApprovalValues,
		TestOrdersAreTheirOwners, TestOrderVerbs, TestRemittanceGoesToABank, TestEveryObjectHasATag, TestCountriesAndCurrencies,
		TestWebhookEndpoints, TestRecords, TestWalletsAndTheirDefault, TestDenyListIsTheAdmins, TestReconciliationIsRead,
		TestCryptoIsReturnedByTwo, TestEveryPatchTakesAVersion, TestWalletsOnEveryNetwork, TestColdTransfersAreSignedElsewhere,
		TestFloatIsMoved, TestRatesAreTheAdmins, TestOperatorsOfTransfers, TestProfilesAreTheAdmins, TestBankDaysAreAgreedByTwo, TestQuotesOfTheDesk, TestAutomaticLimitsAreRaisedByTwo,
		TestANoticeIsNotedAndWakesWhatWaits, TestBreakerShowsAndIsClosed, TestUsersOfAnAdmin, TestExceptionsShowWhereTheCryptoIs,
		TestOwnLimitsAndMovements, TestReservesAreRead, TestReplayNamesWhatWasChanged, TestMomoTermsAreEnteredByTwo,
		TestParkedFlowsAreListedWithWhatToDo, TestReopenNonceSequence, TestEscrowPoolGrowsByRequest,
		TestParkedFlowsAreRetriedTogether, TestEscrowPoolIsRead, TestVendorMakesItsOwnSubvendorsAlone, TestOfficerPaysByBank,
		TestBankConfirmationIsRead, TestBankPayoutIsRefusedByTwo, TestTreasuryIsAllocatedByTwo, TestInventoryIsAllocatedByTwo, TestExceptionIsSettledOnce,
		TestDecisionRepeatedAfterAnUnknownOutcome, TestPINIsChangedWithThePassword, TestSendWithAQuote, TestSessionsEnd,
		TestTwoOfficersDeclareAPayoutNotMade, TestOfficersApproveThroughTheAPI, TestResolveNamesTheRefund, TestApprovalTokens,
		TestTwoOfficersCorrectAnAddress, TestTwoOfficersReleaseTheDatabase, TestFreezeIsPulledByOneAndLiftedByTwo, TestSessionsAreListedAndEnded,
		TestPasswordIsChanged, TestD1NobodyIsTwoOfficers, TestSellersDecideAboutAnotherAmount,
		TestInvitationsAreListedAndWithdrawn, TestPasskeysProveTheirUser, TestH9MoneyNeedsAFreshProof, TestH3SquattersAreNotPaid,
		TestContactsAreProvenByCodes, TestPasswordIsReset, TestOfficersDecideAboutSalesFromWallets, TestFilesAreTheirOwners, TestBankAccountsAreAgreedByTwo,
		TestJournalEntriesAreBookedByTwo, TestStatementLinesAreMatchedByHand, TestTwoOfficersFreeALine, TestStatementsAreImported, TestMerchantsReadTheirStatement,
		TestDestinationsAreConfirmedAndRest, TestOTCDepositTakesFourPeople, TestOTCDepositForCrypto, TestOTCOfficersRunTheQueue, TestPaymentsAreMatchedWithDeposits,
		TestWithdrawalsTakeThreePeople, TestWithdrawalsAreHeldAndCancelled, TestWithdrawalsAreConfirmedAtTheBank, TestWithdrawalsWithoutAnAnswerAreResolvedByTwo,
		TestSwapsAreQuoted, TestSwapsAreOpenedAtAQuote, TestOfficersDecideAboutSwaps, TestSwapsAreCancelled, TestOperatorsOfSwaps, TestSwapsThatNeedAReviewAreResolved,
		TestSwapsAreListed, TestInventoryOfSwapsHasMarks,
		TestEarnedFeesAreSweptByTwo, TestFeeSweepRulesAreAgreedByTwo, TestMoneyGoesBackByBank, TestRefundByBankIsNotPaid,
		TestWalletsOfSeveralOwnersAreAgreedByTwo, TestOperatorsOfWalletsOfSeveralOwners,
		TestProposalsAreApprovedSignedAndExecuted, TestProposalsEnd, TestOperationsWithoutAnotherExample,
	}
}

// exchanges are the richest good exchanges of each operation in each of these tests.
var exchanges = struct {
	sync.Mutex
	byTest map[string]map[string]operationExample
}{byTest: map[string]map[string]operationExample{}}

func nameOf(test func(*testing.T)) string {
	_, name, _ := strings.Cut(runtime.FuncForPC(reflect.ValueOf(test).Pointer()).Name(), ".")
	return name
}

// keep records a request and the answer to it when no earlier ones of their operation show more.
func keep(t testing.TB, r *http.Request, sent []byte, got *reply) {
	test, _, _ := strings.Cut(strings.TrimPrefix(t.Name(), "TestExamplesAreCurrent/"), "/")
	if !slices.ContainsFunc(exampleTests(), func(f func(*testing.T)) bool { return nameOf(f) == test }) || got.status >= http.StatusMultipleChoices {
		return
	}
	router, err := contractRouter()
	if err != nil {
		t.Fatal(err)
	}
	found, named, err := router.FindRoute(r)
	if err != nil || withoutExample[found.Operation.OperationID] != "" {
		return
	}
	exchanges.Lock()
	defer exchanges.Unlock()
	if exchanges.byTest[test] == nil {
		exchanges.byTest[test] = map[string]operationExample{}
	}
	op, kept := found.Operation, exchanges.byTest[test]
	x := operationExample{Status: strconv.Itoa(got.status), Parameters: map[string]any{}}
	for name, text := range named {
		x.Parameters[name] = typed(op, "path", name, text)
	}
	for name, text := range r.URL.Query() {
		x.Parameters[name] = typed(op, "query", name, text[0])
	}
	if takesJSON(op) && len(sent) > 0 && json.Unmarshal(sent, &x.Request) != nil {
		return
	}
	if len(got.body) > 0 && json.Unmarshal(got.body, &x.Answer) != nil {
		return
	}
	x = x.plain()
	if known, twice := kept[op.OperationID]; !twice || known.less(x) {
		kept[op.OperationID] = x
	}
}

func takesJSON(op *openapi3.Operation) bool {
	return op.RequestBody != nil && op.RequestBody.Value.Content["application/json"] != nil
}

// typed is a parameter as its schema has it.
func typed(op *openapi3.Operation, in, name, text string) any {
	if p := op.Parameters.GetByInAndName(in, name); p != nil && !p.Schema.Value.Type.Includes("string") {
		var v any
		if json.Unmarshal([]byte(text), &v) == nil {
			return v
		}
	}
	return text
}

// less reports whether y shows more than x. The order of the exchanges does not matter, because tests loop over maps.
func (x operationExample) less(y operationExample) bool {
	a, _ := encode(x)
	b, _ := encode(y)
	return len(a) < len(b) || len(a) == len(b) && string(a) < string(b)
}

// poor reports whether an answer is a list without an entry.
func poor(answer any) bool {
	switch v := answer.(type) {
	case []any:
		return len(v) == 0
	case map[string]any:
		_, page := v["page_size"]
		if _, payloads := v["payloads"]; page || payloads {
			for _, inner := range v {
				if l, ok := inner.([]any); ok && len(l) > 0 {
					return false
				}
			}
			return true
		}
	}
	return false
}

// The volatile values of an example, and what stands for them.
var (
	anID      = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	aMoment   = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+\d\d:\d\d)`)
	aDay      = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	hexDigits = regexp.MustCompile(`^[0-9a-f]{24,}$`)
	tronText  = regexp.MustCompile(`^T[0-9A-Za-z]{33}$`)
	anEmail   = regexp.MustCompile(`(?i)^[a-z_]*\d+@example\.com$`)
	aPhone    = regexp.MustCompile(`^(\+?254|0)7\d{8}$`)
	aReceipt  = regexp.MustCompile(`^[0-9A-F]{10}$`)
	aNumber   = regexp.MustCompile(`^(KVK|KVD)[0-9A-Z]{9}$|^(evt_|https://hooks\.example/)\d+$`)
	aCode     = regexp.MustCompile(`^\d{6}$`)
	masked    = regexp.MustCompile(`^\*+\d+$`)
	aLink     = regexp.MustCompile(`link=v4\.local\.[\w.-]+`)
	aName     = regexp.MustCompile(`^(.*)Number\d+$`)
)

const (
	exampleMoment = "2026-01-31T12:00:00.000Z"
	exampleEnd    = "2026-01-31T12:30:00.000Z"
	exampleDay    = "2026-01-31"
	exampleHash   = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
	mostListed    = 2 // entries of a list that an example shows
)

// exampleWords are the properties of which a test can't tell the value, or whose value must not be published.
var exampleWords = map[string]any{
	"access_token": "an-access-token", "refresh_token": "a-refresh-token", "token": "an-example-of-a-token", "secret": "whsec_c2VjcmV0", "next_after": "MTA0", "after": "MTA0",
	"device_token": "a-device-token",
	"credential": map[string]any{
		"id": "Y3JlZGVudGlhbA", "rawId": "Y3JlZGVudGlhbA", "type": "public-key", "response": map[string]any{"clientDataJSON": "e30", "authenticatorData": "ZGF0YQ", "signature": "c2ln"},
	},
	"options": map[string]any{"challenge": "Y2hhbGxlbmdl", "rpId": "api.example", "userVerification": "required"},
	"cursor":  104.0, "event_cursor": 104.0, "id": 104.0, "latency_ms": 2.0, "database": "7712220016688908406:00000001:19538",
}

// plain replaces what differs from one run to the next: ids, times, addresses, hashes and tokens. Equal ids stay equal.
type plain struct{ ids map[string]string }

func (p *plain) value(name string, v any) any {
	if word, fixed := exampleWords[name]; fixed && reflect.TypeOf(v) == reflect.TypeOf(word) {
		return word
	}
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for _, k := range slices.Sorted(maps.Keys(v)) {
			out[p.text("", k)] = p.value(k, v[k])
		}
		return out
	case []any:
		out := []any{}
		for _, inner := range v[:min(len(v), mostListed)] {
			out = append(out, p.value(name, inner))
		}
		return out
	case string:
		return p.text(name, v)
	}
	return v
}

func (p *plain) text(name, s string) string {
	s = anID.ReplaceAllStringFunc(s, func(id string) string {
		if p.ids[id] == "" {
			p.ids[id] = fmt.Sprintf("019c13c5-8a00-7000-8000-%012d", len(p.ids)+1)
		}
		return p.ids[id]
	})
	moment := exampleMoment
	if strings.Contains(name, "expire") || strings.HasSuffix(name, "until") || strings.HasSuffix(name, "_to") {
		moment = exampleEnd
	}
	s = aMoment.ReplaceAllStringFunc(s, func(at string) string {
		if strings.HasPrefix(at, "0001-") { // none
			return at
		}
		return moment
	})
	s = aLink.ReplaceAllString(s, "link=an-example-of-a-link")
	switch {
	case aDay.MatchString(s):
		return exampleDay
	case hexDigits.MatchString(strings.TrimPrefix(s, "0x")):
		digits := strings.TrimPrefix(s, "0x")
		return s[:len(s)-len(digits)] + strings.Repeat(exampleHash, len(digits)/len(exampleHash)+1)[:len(digits)]
	case tronText.MatchString(s) && s != goodAddress:
		if p.ids[s] == "" {
			p.ids[s] = fakeAddress(uuid.NewSHA1(uuid.Nil, []byte{byte(len(p.ids))}))
		}
		return p.ids[s]
	case anEmail.MatchString(s):
		return "amina@example.com"
	case name == "code" && aCode.MatchString(s):
		return "104104"
	case aReceipt.MatchString(s):
		return "TKF8A1B2C3"
	case aNumber.MatchString(s):
		return aNumber.ReplaceAllString(s, "${1}${2}104000104")
	case masked.MatchString(s):
		return "*********678"
	case aPhone.MatchString(s):
		return s[:len(s)-len("712345678")] + "712345678"
	}
	return aName.ReplaceAllString(s, "${1}Otieno")
}

func (x operationExample) plain() operationExample {
	p := &plain{ids: map[string]string{}}
	out := operationExample{Status: x.Status}
	if len(x.Parameters) > 0 {
		out.Parameters = p.value("", x.Parameters).(map[string]any)
	}
	if x.Request != nil {
		out.Request = p.value("", x.Request)
	}
	if x.Answer != nil {
		out.Answer = p.value("", x.Answer)
	}
	return out
}

// TestEveryOperationHasAnExample checks that each operation of the document has an example, and that it is valid.
func TestEveryOperationHasAnExample(t *testing.T) {
	doc := contract(t)
	all, err := readExamples()
	if err != nil {
		t.Fatal(err)
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			x, found := all[op.OperationID]
			if reason := withoutExample[op.OperationID]; found == (reason != "") {
				t.Errorf("%s %s (%s): an example is there: %v, reason for none: %q", method, path, op.OperationID, found, reason)
				continue
			}
			if found {
				holdExample(t, op, x)
			}
		}
	}
}

func holdExample(t *testing.T, op *openapi3.Operation, x operationExample) {
	t.Helper()
	answer := op.Responses.Value(x.Status)
	if answer == nil {
		t.Errorf("%s: the answer %s of the example is not described", op.OperationID, x.Status)
		return
	}
	media := answer.Value.Content.Get("application/json")
	if (media != nil) != (x.Answer != nil) {
		t.Errorf("%s: the example has an answer: %v, the document: %v", op.OperationID, x.Answer != nil, media != nil)
	} else if media != nil {
		valid(t, op.OperationID+"'s answer", media, x.Answer)
	}
	if x.Request != nil {
		valid(t, op.OperationID+"'s request", op.RequestBody.Value.Content.Get("application/json"), x.Request)
	} else if takesJSON(op) && op.RequestBody.Value.Required {
		t.Errorf("%s: the example has no request", op.OperationID)
	}
	for _, p := range op.Parameters {
		if v, given := x.Parameters[p.Value.Name]; given {
			if err := p.Value.Schema.Value.VisitJSON(v); err != nil {
				t.Errorf("%s: the parameter %s of the example: %v", op.OperationID, p.Value.Name, err)
			}
		} else if p.Value.In == "path" {
			t.Errorf("%s: the example has no %s", op.OperationID, p.Value.Name)
		}
	}
}

func valid(t *testing.T, what string, media *openapi3.MediaType, example any) {
	t.Helper()
	if media.Example == nil {
		t.Errorf("%s is not in the document", what)
	}
	if err := media.Schema.Value.VisitJSON(example); err != nil {
		t.Errorf("%s breaks its schema: %v", what, err)
	}
}

// TestOperationsWithoutAnotherExample uses the operations that no other test of the list uses.
func TestOperationsWithoutAnotherExample(t *testing.T) {
	e, found := strays(t, "7")
	admin, officer := e.person(exchange.RoleAdmin), e.person(exchange.RoleTreasury)
	const auth = "/api/v1/auth/"
	path := auth + "fiat-currencies"
	coin := map[string]any{"code": "XTS", "name": "Shell", "numeric_code": "963", "symbol": "S", "decimals": 2}
	made := e.do(post, path, coin, admin.auth(), freshKey()).want(http.StatusCreated)
	e.do(del, path+"/"+made.text("id"), nil, admin.auth()).want(http.StatusNoContent)

	note := map[string]any{"note": "their account is closed"}
	e.do(post, auth+"payment-exceptions/"+found[0].ID.String()+"/refund", map[string]any{"note": "they wrote", "address": goodAddress}, officer.auth(), freshKey()).
		want(http.StatusAccepted)
	refunds := e.do(get, auth+"refunds?payment_exception_id="+found[0].ID.String(), nil, officer.auth()).want(http.StatusOK).object()["refunds"].([]any)
	refund := refunds[0].(map[string]any)
	seen := map[string]any{"note": note["note"], "digest": refund["approval_digest"]}
	e.do(post, auth+"refunds/"+refund["id"].(string)+"/reject", seen, admin.auth(), freshKey()).want(http.StatusOK)

	vendor, customer := e.person(exchange.RoleVendor), e.person(exchange.RoleCustomer)
	late := e.pays(customer, e.offer(vendor, e.wallet(vendor)).ID, "259", true)
	e.watch(late.Exception.AttemptID)
	e.do(post, auth+"payment-exceptions/"+late.Exception.ID.String()+"/accept", note, officer.auth(), freshKey()).want(http.StatusOK)

	w := &harness{env: e, people: map[exchange.Role]person{exchange.RoleVendor: vendor, exchange.RoleCustomer: customer}}
	delivery := scene{w: w, who: vendor, own: true}.deliveryID().String()
	storetest.Exec(t, e.store, `UPDATE webhook_deliveries SET status = 'failed', status_detail = 'exhausted'`)
	e.do(get, auth+"webhook-deliveries?page_id=1&page_size=10", nil, vendor.auth()).want(http.StatusOK)
	e.do(post, auth+"webhook-deliveries/"+delivery+"/replay", nil, vendor.auth(), freshKey()).want(http.StatusAccepted)
}
