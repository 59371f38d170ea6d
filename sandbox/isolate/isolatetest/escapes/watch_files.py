# family: kernel
# tries: to watch what others do with shared files (inotify)
# invariant: 8
# layers: seccomp

watch = call(294, 0)
call(254, watch, b"/glasshouse", 0xFFF)
"escaped"
