// Package crash lets a test kill a process at any of its side effects. It is active only in builds with the tag crash; in
// other builds its functions do nothing.
//
// A side effect is a store transaction that writes, or an outgoing call that changes something, made by an activity. Each
// has two points, one before it and one after it:
//
//	<activity>/<method of the store>#<n>/before
//	<activity>/call#<n>/after
//
// A transaction is named after the store's method, so that its name does not depend on earlier writes. n counts, within one
// execution of the activity, the places in the code that make the same step. Points are found automatically, never declared
// by hand.
package crash
