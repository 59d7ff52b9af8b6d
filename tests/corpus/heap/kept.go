// Keeps blocks of known sizes, and writes its profiles: kept RATE FOLDER; then it waits for its standard input to end.
package main

import (
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
)

var all [][]byte

//go:noinline
func blocks(count int) {
	for i := 0; i < count; i++ {
		all = append(all, make([]byte, 1000))
	}
}

func inlined(size int) []byte { return make([]byte, size) }

//go:noinline
func one(size int) { all = append(all, inlined(size)) }

//go:noinline
func dropped(count int) {
	for i := 0; i < count; i++ {
		block := make([]byte, 4096)
		runtime.KeepAlive(&block)
		if cap(all) == 7 {
			all = append(all, block)
		}
	}
}

func write(name string, debug int) {
	file, err := os.Create(os.Args[2] + "/" + name)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	kind := "heap"
	if name == "goroutine.pb.gz" {
		kind = "goroutine"
	}
	if err := pprof.Lookup(kind).WriteTo(file, debug); err != nil {
		panic(err)
	}
}

func main() {
	runtime.MemProfileRate, _ = strconv.Atoi(os.Args[1])
	all = make([][]byte, 0, 5000)
	cpu, err := os.Create(os.Args[2] + "/cpu.pb.gz")
	if err != nil {
		panic(err)
	}
	pprof.StartCPUProfile(cpu)
	blocks(3000)
	one(70000)
	dropped(300)
	pprof.StopCPUProfile()
	runtime.GC()
	runtime.GC()
	write("heap.pb.gz", 0)
	write("heap.txt", 1)
	write("goroutine.pb.gz", 0)
	io.ReadAll(os.Stdin)
}
