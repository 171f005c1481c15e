module example.test/day

go 1.21

require example.test/words v1.0.0
