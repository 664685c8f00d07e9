package main

import "syscall"

// dieWithParent makes the kernel end the process when this program ends without a chance to do it itself.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGTERM }
