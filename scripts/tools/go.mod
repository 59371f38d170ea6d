module glasshouse/scripts/tools

go 1.26.0
