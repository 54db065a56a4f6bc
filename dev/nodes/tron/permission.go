package tron

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"unicode/utf16"

	sdkaddress "github.com/fbsobreira/gotron-sdk/pkg/address"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/api"
	"github.com/fbsobreira/gotron-sdk/pkg/proto/core"
)

const (
	ownerPermissionID       = 0
	firstActivePermissionID = 2
	maxPermissionKeys       = 5 // getTotalSignNum
	maxActivePermissions    = 8
	maxPermissionName       = 32 // of Java's characters, 16 bits each
	operationsLength        = 32
)

// availableOperations are the contract types an active permission may name and
// defaultOperations those of the permission every account starts with; bit n is
// byte n/8, bit n%8 (getAvailableContractType and getActiveDefaultOperations).
var (
	availableOperations = operations(0x7f, 0xff, 0x1f, 0xc0, 0x03, 0x7e, 0xfb, 0x0f)
	defaultOperations   = operations(0x7f, 0xff, 0x1f, 0xc0, 0x03, 0x3e, 0xfb, 0x0f)
)

func operations(first ...byte) []byte {
	return append(first, make([]byte, operationsLength-len(first))...)
}

func hasOperation(ops []byte, contractType int) bool {
	return len(ops) == operationsLength && ops[contractType/8]&(1<<(contractType%8)) != 0
}

func defaultOwnerPermission(a Address) *core.Permission {
	return &core.Permission{
		Type: core.Permission_Owner, Id: ownerPermissionID, PermissionName: "owner", Threshold: 1,
		Keys: []*core.Key{{Address: bytes.Clone(a[:]), Weight: 1}},
	}
}

func defaultActivePermission(a Address) *core.Permission {
	return &core.Permission{
		Type: core.Permission_Active, Id: firstActivePermissionID, PermissionName: "active", Threshold: 1,
		Operations: defaultOperations, Keys: []*core.Key{{Address: bytes.Clone(a[:]), Weight: 1}},
	}
}

// permission returns nil when the account has none of that id. An address that
// was never activated has the default ones.
func (s *state) permission(a Address, id int32) *core.Permission {
	x := s.account(a)
	if x == nil {
		switch id {
		case ownerPermissionID:
			return defaultOwnerPermission(a)
		case firstActivePermissionID:
			return defaultActivePermission(a)
		}
		return nil
	}
	if id == ownerPermissionID {
		if x.OwnerPermission == nil {
			return defaultOwnerPermission(a)
		}
		return x.OwnerPermission
	}
	for _, p := range x.ActivePermission {
		if p.Id == id {
			return p
		}
	}
	return nil
}

func checkOperation(p *core.Permission, c *core.Transaction_Contract) error {
	if c.PermissionId == ownerPermissionID {
		return nil
	}
	if p.Type != core.Permission_Active {
		return errors.New("Permission type is error") //nolint:staticcheck // java-tron's text
	}
	if !hasOperation(p.Operations, int(c.Type)) {
		return errors.New("Permission denied") //nolint:staticcheck // java-tron's text
	}
	return nil
}

// weigh sums the weights of the signatures under a permission and lists their
// signers. One signature from outside the permission spoils them all.
func weigh(p *core.Permission, signatures [][]byte, id Hash) (weight int64, signers []Address, err error) {
	if len(signatures) > len(p.Keys) {
		return 0, nil, fmt.Errorf("Signature count is %d more than key counts of permission : %d", len(signatures), len(p.Keys)) //nolint:staticcheck // java-tron's text
	}
	seen := map[Address]bool{}
	for _, s := range signatures {
		a, err := Recover(id, s)
		if err != nil {
			return 0, nil, err
		}
		w := keyWeight(p, a)
		if w == 0 {
			return 0, nil, fmt.Errorf("%x is signed by %s but it is not contained of permission.", s, a) //nolint:staticcheck,revive // java-tron's text
		}
		if seen[a] {
			return 0, nil, fmt.Errorf("%s has signed twice!", a) //nolint:staticcheck,revive // java-tron's text
		}
		seen[a] = true
		signers = append(signers, a)
		weight += w
	}
	return weight, signers, nil
}

func keyWeight(p *core.Permission, a Address) int64 {
	for _, k := range p.Keys {
		if bytes.Equal(k.Address, a[:]) {
			return k.Weight
		}
	}
	return 0
}

// checkSignatures is java-tron's validateSignature.
func (s *state) checkSignatures(tx *core.Transaction, id Hash, owner Address) error {
	c := tx.RawData.Contract[0]
	refuse := func(reason string) error {
		return &Refusal{api.Return_SIGERROR, "Validate signature error: " + reason}
	}
	if len(tx.Signature) == 0 {
		return refuse("miss sig or contract")
	}
	if len(tx.Signature) > maxPermissionKeys {
		return refuse("too many signatures")
	}
	p := s.permission(owner, c.PermissionId)
	if p == nil {
		return refuse("permission isn't exit")
	}
	if err := checkOperation(p, c); err != nil {
		return refuse(err.Error())
	}
	weight, _, err := weigh(p, tx.Signature, id)
	if err != nil {
		return refuse(err.Error())
	}
	if weight < p.Threshold {
		return refuse("sig error")
	}
	return nil
}

// validatePermissionUpdate is java-tron's AccountPermissionUpdateActuator.
func (s *state) validatePermissionUpdate(owner Address, m *core.AccountPermissionUpdateContract) (int64, error) {
	x := s.account(owner)
	switch {
	case x == nil:
		return 0, invalid("ownerAddress account does not exist")
	case m.Owner == nil:
		return 0, invalid("owner permission is missed")
	case m.Witness != nil:
		return 0, invalid("account isn't witness can't set witness permission")
	case len(m.Actives) == 0:
		return 0, invalid("active permission is missed")
	case len(m.Actives) > maxActivePermissions:
		return 0, invalid("active permission is too many")
	case m.Owner.Type != core.Permission_Owner:
		return 0, invalid("owner permission type is error")
	}
	if err := checkPermission(m.Owner); err != nil {
		return 0, err
	}
	for _, p := range m.Actives {
		if p.Type != core.Permission_Active {
			return 0, invalid("active permission type is error")
		}
		if err := checkPermission(p); err != nil {
			return 0, err
		}
	}
	return permissionUpdateFee, nil
}

func checkPermission(p *core.Permission) error {
	switch {
	case len(p.Keys) > maxPermissionKeys:
		return invalid("number of keys in permission should not be greater than %d", maxPermissionKeys)
	case len(p.Keys) == 0:
		return invalid("key's count should be greater than 0")
	case p.Threshold <= 0:
		return invalid("permission's threshold should be greater than 0")
	case len(utf16.Encode([]rune(p.PermissionName))) > maxPermissionName:
		return invalid("permission's name is too long")
	case p.ParentId != 0:
		return invalid("permission's parent should be owner")
	}
	if err := checkKeys(p); err != nil {
		return err
	}
	if p.Type == core.Permission_Owner {
		if len(p.Operations) > 0 {
			return invalid("Owner permission needn't operations")
		}
		return nil
	}
	if len(p.Operations) != operationsLength {
		return invalid("operations size must 32")
	}
	for i := range operationsLength * 8 {
		if hasOperation(p.Operations, i) && !hasOperation(availableOperations, i) {
			return invalid("%d isn't a validate ContractType", i)
		}
	}
	return nil
}

func checkKeys(p *core.Permission) error {
	seen := map[string]bool{}
	for _, k := range p.Keys {
		if seen[string(k.Address)] {
			return invalid("address should be distinct in permission %s", p.Type)
		}
		seen[string(k.Address)] = true
	}
	var sum int64
	for _, k := range p.Keys {
		if _, ok := addressOf(k.Address); !ok {
			return invalid("key is not a validate address")
		}
		if k.Weight <= 0 {
			return invalid("key's weight should be greater than 0")
		}
		if sum > math.MaxInt64-k.Weight {
			return invalid("long overflow")
		}
		sum += k.Weight
	}
	if sum < p.Threshold {
		return invalid("sum of all key's weight should not be less than threshold in permission %s", p.Type)
	}
	return nil
}

// signWeight is java-tron's getTransactionSignWeight: a pure function of the
// transaction and the account's present permission.
func (s *state) signWeight(tx *core.Transaction) *api.TransactionSignWeight {
	id := TransactionID(tx)
	out := &api.TransactionSignWeight{
		Transaction: &api.TransactionExtention{Transaction: tx, Txid: id[:], Result: &api.Return{Result: true}},
		Result:      &api.TransactionSignWeight_Result{},
	}
	set := func(code api.TransactionSignWeight_ResultResponseCode, message string) *api.TransactionSignWeight {
		out.Result.Code, out.Result.Message = code, message
		return out
	}
	if len(tx.GetRawData().GetContract()) == 0 {
		return set(api.TransactionSignWeight_Result_OTHER_ERROR, "Invalid transaction: no valid contract")
	}
	c := tx.RawData.Contract[0]
	owner, _, err := ownerOf(c)
	if err != nil {
		return set(api.TransactionSignWeight_Result_OTHER_ERROR, "class java.lang.RuntimeException : "+err.Error())
	}
	if s.account(owner) == nil {
		return set(api.TransactionSignWeight_Result_PERMISSION_ERROR, "Account does not exist!")
	}
	p := s.permission(owner, c.PermissionId)
	if p == nil {
		return set(api.TransactionSignWeight_Result_PERMISSION_ERROR, "Permission for this, does not exist!")
	}
	if c.PermissionId != ownerPermissionID && !hasOperation(p.Operations, int(c.Type)) {
		return set(api.TransactionSignWeight_Result_PERMISSION_ERROR, "Permission denied!")
	}
	out.Permission = p
	weight, signers, err := weigh(p, tx.Signature, id)
	if err != nil {
		return set(weighErrorCode(err, tx.Signature), err.Error())
	}
	for _, a := range signers {
		out.ApprovedList = append(out.ApprovedList, sdkaddress.Address(bytes.Clone(a[:])))
	}
	out.CurrentWeight = weight
	if weight < p.Threshold {
		return set(api.TransactionSignWeight_Result_NOT_ENOUGH_PERMISSION, "")
	}
	return out
}

func weighErrorCode(err error, signatures [][]byte) api.TransactionSignWeight_ResultResponseCode {
	for _, s := range signatures {
		if len(s) < signatureLength {
			return api.TransactionSignWeight_Result_SIGNATURE_FORMAT_ERROR
		}
	}
	if errors.Is(err, errSignatureMath) {
		return api.TransactionSignWeight_Result_COMPUTE_ADDRESS_ERROR
	}
	return api.TransactionSignWeight_Result_PERMISSION_ERROR
}
