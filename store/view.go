package store

import (
	"github.com/google/uuid"

	"kivuko/exchange"
)

// View is whose objects a reader may see. It is part of the SQL of every read, so another owner's object is missing
// rather than forbidden.
type View struct {
	Scope    exchange.Scope
	UserID   uuid.UUID
	VendorID uuid.UUID
	// staff lets a reader see drafts and other unpublished objects of everyone. Only ViewOf and Everything set it, so
	// a View made by hand sees too little rather than too much.
	staff bool
	role  exchange.Role // empty for our own flows
}

// ViewOf is the view of a principal for an action, by the policy.
func ViewOf(p exchange.Principal, a exchange.Action) View {
	return View{Scope: exchange.ScopeOf(p.Role, a), UserID: p.UserID, VendorID: p.VendorID, staff: p.Role.Staff(), role: p.Role}
}

// Everything is the view of Kivuko's own flows.
func Everything() View { return View{Scope: exchange.ScopeAny, staff: true} }

// args are the three arguments of a scoped query: everything, the owner, the vendor. NULL equals nothing, so a scope
// that does not apply matches no row.
func (v View) args() (all bool, owner, vendor uuid.NullUUID) {
	switch v.Scope {
	case exchange.ScopeAny:
		all = true
	case exchange.ScopeVendor:
		vendor = nullID(v.VendorID)
	case exchange.ScopeOwn:
		owner = nullID(v.UserID)
	case exchange.ScopeNone:
	}
	return all, owner, vendor
}

// Limits of pages. Depth bounds how far a list can be paged, because skipped rows are read too.
const (
	MaxPageSize  = 100
	maxPageDepth = 1_000_000
)

// Page asks for one page of a list. Number counts from 1.
type Page struct{ Number, Size int }

// bounds is the page as LIMIT and OFFSET. A page beyond the depth limit is empty.
func (p Page) bounds() (limit, offset int) {
	limit = min(max(p.Size, 1), MaxPageSize+1) // one more shows whether there is another page
	if p.Number > maxPageDepth/limit {
		return 0, 0
	}
	return limit, (max(p.Number, 1) - 1) * limit
}

func nullID(id uuid.UUID) uuid.NullUUID { return uuid.NullUUID{UUID: id, Valid: id != uuid.Nil} }
