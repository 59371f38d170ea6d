package main

import (
	"net"
	"os"
)

// serviceManager sends the state of this process to the service manager that started it (sd_notify(3)). The zero value
// sends nothing: no service manager asked for the state.
type serviceManager struct{ socket string }

// Messages of sd_notify(3).
const (
	notifyReady    = "READY=1"
	notifyStopping = "STOPPING=1"
	notifyStatus   = "STATUS=" // a line for people, which `systemctl status` shows
)

// findServiceManager returns the service manager that NOTIFY_SOCKET names. It removes the variable, so that no process
// that this one starts can send messages in its place.
func findServiceManager() serviceManager {
	m := serviceManager{os.Getenv("NOTIFY_SOCKET")}
	_ = os.Unsetenv("NOTIFY_SOCKET")
	return m
}

// isPresent reports whether a service manager asked for the state.
func (m serviceManager) isPresent() bool { return m.socket != "" }

// notify sends messages. An error does not concern the service: systemd ends it if READY=1 does not arrive in time.
func (m serviceManager) notify(messages string) error {
	if !m.isPresent() {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"}) // @: an abstract name
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = conn.Write([]byte(messages))
	return err
}
