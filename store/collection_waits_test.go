package store_test

import (
	"testing"

	"github.com/google/uuid"

	"kivuko/exchange"
	"kivuko/store/storetest"
)

func TestCollectionsOfAnOrder(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o, other := m.Order(t, s, "10"), m.Order(t, s, "5")
	first := storetest.Attempt(t, s, o)
	storetest.Attempt(t, s, other)
	if _, err := s.RecordFailure(t.Context(), first.ID, exchange.Observation{State: exchange.SeenFailed, Soft: true, Code: "1037", Class: exchange.ClassUnanswered}); err != nil {
		t.Fatal(err)
	}
	second := storetest.Attempt(t, s, o)
	list, err := s.Collections(t.Context(), exchange.OrderObject(o.ID))
	if err != nil || len(list) != 2 || list[0].ID != first.ID || list[1].ID != second.ID {
		t.Errorf("reads %v (%v), want the attempts %s and %s", list, err, first.ID, second.ID)
	}
	if none, err := s.Collections(t.Context(), exchange.OrderObject(uuid.New())); err != nil || len(none) != 0 {
		t.Errorf("an order that does not exist has %v (%v)", none, err)
	}
}

func TestCommandIsUsedOnce(t *testing.T) {
	t.Parallel()
	s := storetest.New(t)
	m := storetest.NewMarket(t, s)
	o := m.Order(t, s, "10")
	admin := storetest.User(t, s, exchange.RoleAdmin)
	c := exchange.OperatorCommand{ID: storetest.NewID(t), ObjectType: "order", ObjectID: o.ID, Verb: "refund", Note: "n", ActorID: admin.ID}
	if _, err := s.CommandUsed(t.Context(), c.ID); exchange.CodeOf(err) != exchange.CodeNotFound {
		t.Errorf("a command without a row answers %v", err)
	}
	if err := s.SaveCommand(t.Context(), c, storetest.PrincipalOf(admin)); err != nil {
		t.Fatal(err)
	}
	if used, err := s.CommandUsed(t.Context(), c.ID); err != nil || used {
		t.Errorf("a new command is used: %v (%v)", used, err)
	}
	if _, err := s.UseCommand(t.Context(), c.ID, "order", o.ID); err != nil {
		t.Fatal(err)
	}
	if used, err := s.CommandUsed(t.Context(), c.ID); err != nil || !used {
		t.Errorf("a used command is new: %v (%v)", used, err)
	}
}
