// Package supervisor keeps the processes of a local stack alive: it starts them,
// collects their logs, waits until they are ready, restarts those that die, kills
// them on request, and ends all of them in the reverse order of their start.
package supervisor
