//go:build !linux

package main

import "syscall"

// dieWithParent needs Linux. Elsewhere a killed launcher leaves its emulator behind.
func dieWithParent(*syscall.SysProcAttr) {}
