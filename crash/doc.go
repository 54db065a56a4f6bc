// Package crash lets a test kill a process at any of its side effects. Only a build with the tag crash has it; in every
// other build its functions give back what they are given, and nothing of it is in the binary.
//
// A side effect is a transaction of the store that has written something, or a call to the outside that changes something,
// made by an activity. It has two points, one before it and one after it:
//
//	<activity>/<method of the store>#<n>/before
//	<activity>/call#<n>/after
//
// A step of the store is named by the store's method, so that it has the same name whatever else was written before.
// n counts, within one execution of the activity, the places in the code that ask for the same. Nothing names points by hand: whatever an activity does is a point.
package crash
