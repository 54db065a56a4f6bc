package bench

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"kivuko/dev/stack"
)

// Names of processes that are not supervised.
const (
	processPostgres = "postgresql" // followed by a slash and the database of a backend
	processLoader   = "loader"     // this program
)

// usage is processor time by process.
type usage map[string]time.Duration

// clockTick is USER_HZ, which is 100 on Linux (proc(5)).
const clockTick = 10 * time.Millisecond

// Fields of /proc/<pid>/stat after the program's name, from zero (proc(5)).
const (
	statParent = 1
	statUser   = 11
	statSystem = 12
	statGone   = 13 // user time of children that ended
	statGoneIn = 14 // and their system time
)

// procStat reads the fields of a process; nil where there is no process or no /proc.
func procStat(pid int) []int64 {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	end := bytes.LastIndexByte(raw, ')')
	fields := bytes.Fields(raw[end+1:])
	out := make([]int64, len(fields))
	for i, f := range fields {
		out[i], _ = strconv.ParseInt(string(f), 10, 64) // the state is a letter and is not used
	}
	if len(out) <= statGoneIn {
		return nil
	}
	return out
}

func processTime(pid int) time.Duration {
	s := procStat(pid)
	if s == nil {
		return 0
	}
	return time.Duration(s[statUser]+s[statSystem]) * clockTick
}

// postgresTimes returns the server's processor time by database. Processes without a database, and backends that
// ended, count for the server itself.
func postgresTimes(pid int) usage {
	s := procStat(pid)
	if s == nil {
		return usage{}
	}
	u := usage{processPostgres: processTime(pid) + time.Duration(s[statGone]+s[statGoneIn])*clockTick}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return u
	}
	for _, dir := range all {
		child, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		if s := procStat(child); s != nil && s[statParent] == int64(pid) {
			u[processPostgres+databaseOf(child)] += processTime(child)
		}
	}
	return u
}

// databaseOf returns a backend's database with a slash, as in "/temporal", from its process title ("postgres:
// user database client state"), or an empty string for other processes of the server.
func databaseOf(pid int) string {
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	const database, client = 2, 3
	title := bytes.Fields(raw)
	if len(title) <= client || !bytes.ContainsRune(title[client], '(') {
		return ""
	}
	return "/" + string(title[database])
}

// measured returns the supervised processes whose time is counted. The codec server is not used in benchmarks.
func (w *harness) measured() []string {
	names := []string{stack.ProcessTemporal, stack.ProcessTron, stack.ProcessMomo, stack.ProcessAPI, processBare}
	for _, q := range w.stack.Served() {
		names = append(names, stack.ProcessWorker(q))
	}
	return names
}

// measure reads the processor time that every process has used so far.
func (w *harness) measure() usage {
	u := postgresTimes(w.stack.Postgres.PID())
	u[processLoader] = processTime(os.Getpid())
	for _, name := range w.measured() {
		if c := w.stack.Supervisor.Child(name); c != nil {
			u[name] = processTime(c.PID())
		}
	}
	return u
}

func (u usage) since(before usage) usage {
	out := usage{}
	for process, t := range u {
		out[process] = t - before[process]
	}
	return out
}

// total returns the time of all processes but the named ones.
func (u usage) total(without ...string) time.Duration {
	var sum time.Duration
	for process, t := range u {
		if !slices.Contains(without, process) {
			sum += t
		}
	}
	return sum
}

// resident returns the memory of a supervised process in bytes; 0 where it is unknown.
func (w *harness) resident(name string) int64 {
	c := w.stack.Supervisor.Child(name)
	if c == nil {
		return 0
	}
	raw, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(c.PID()), "statm"))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(raw)
	if len(fields) < 2 {
		return 0
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}

// hostBusy returns the busy time of the machine's processors so far; 0 where it is unknown.
func hostBusy() time.Duration {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	fields := bytes.Fields(line)
	const idle, wait = 4, 5 // after "cpu": user, nice, system, idle, iowait, irq, softirq, steal (proc(5))
	var sum int64
	for i, f := range fields {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if i == 0 || i == idle || i == wait || i > 8 || err != nil {
			continue
		}
		sum += n
	}
	return time.Duration(sum) * clockTick
}
