"""Does every kind of bad input end in one clear error? (Readers have more such tests in tests/unit/io.)"""
from harness import CliTest

GOOD = '{"collectives": [{"op": "all_reduce", "bytes": "1 GiB", "group": "all"}]}'
RATE = 'such as "400 Gb/s" or "50 GB/s"'


class Topologies(CliTest):
    def refuses(self, text, message, status=2):
        self.write("t.json", text)
        self.fails(status, message, "topo", "t.json")

    def refuses_rate(self, rate, message):
        self.refuses('{"node": {"preset": "dgx-h100"}, "nodes": 2,\n'
                     ' "fabric": {"type": "single-switch", "link": {"bandwidth": %s}}}' % rate,
                     "t.json:2:60: /fabric/link/bandwidth: " + message)

    def test_units(self):
        self.refuses_rate('"400"', f'expected a bandwidth with its unit {RATE}, got "400"')
        self.refuses_rate("400", f'expected a bandwidth with its unit {RATE}, got "400"')
        self.refuses_rate('"4 Gx/s"', f'expected a bandwidth {RATE}, got "4 Gx/s": "Gx/s" is not a known unit')

    def test_bits_where_bytes_are_meant(self):
        self.refuses_rate('"400 GB/s"', "expected less than 3.2 Tb/s for one cable, in one direction, "
                                        'got "400 GB/s", did you mean "400 Gb/s"?')

    def test_zero_negative_and_endless_rates(self):
        for rate in ("0 Gb/s", "-4 Gb/s"):
            self.refuses_rate(f'"{rate}"', f'expected a bandwidth above zero {RATE}, got "{rate}"')
        self.refuses('{"node": {"preset": "dgx-h100"}, "nodes": NaN}',
                     't.json:1:43: expected a value, got "NaN"')
        self.refuses('{"node": {"preset": "dgx-h100"}, "fabric": {"oversubscription": 1e999}}',
                     "t.json:1:65: /fabric/oversubscription: the number 1e999 is too large")

    def test_counts(self):
        for count in (0, -2, 99999999999):
            self.refuses('{"node": {"preset": "dgx-h100"}, "nodes": %d}' % count,
                         f"t.json:1:43: /nodes: expected a whole number from 1 to 1000000, got {count}")
        self.fails(2, 'dgx-h100:0: expected a number of nodes from 1 to 1000000 after ":", got "0"',
                   "topo", "dgx-h100:0")

    def test_unknown_presets_offer_the_nearest(self):
        self.fails(2, 'dgx-h10: is neither a preset nor a file, did you mean "dgx-h100"?', "topo", "dgx-h10")
        self.refuses('{"node": {"preset": "dgx-h10"}}',
                     't.json:1:21: /node/preset: "dgx-h10" is not a known node preset, '
                     'did you mean "dgx-h100"?')

    def test_json(self):
        self.refuses('{"nodes": 2,\n  ,}', 't.json:2:3: expected a key in double quotes, got ","')
        self.refuses('{"node": ["dgx-h100"]}', "t.json:1:10: /node: expected an object, got an array")
        self.refuses('{"node": {"preset": "dgx-h100"},\n "nodes": 2, "nodes": 3}',
                     't.json:2:14: /nodes: the key "nodes" is given twice, first in line 2')

    def test_settings_are_named_as_places(self):
        result = self.flyover("topo", "dgx-h100:2", "--set", "fabric.link.bandwidth=400")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("--set fabric.link.bandwidth"), result.stderr)

    def test_a_disconnected_graph_names_two_ends(self):
        self.write("t.json", '{"node": {"preset": "dgx-h100"}, "nodes": 2, "fabric": {"type": "rail-optimized"},'
                             ' "overrides": [{"select": "nic[node=1]", "state": "down"}]}')
        result = self.flyover("topo", "t.json", "--svg", "t.svg")
        self.assertEqual((result.returncode, self.files()), (1, ["t.json"]))
        self.assertEqual(result.stderr, "t.json: no path joins node0/gpu0 and node1/gpu0\n")
        result = self.flyover("bench", "all_reduce", "-t", "t.json", "-b", "1M", "-e", "1M")
        self.assertEqual((result.returncode, result.stdout), (1, ""))
        self.assertRegex(result.stderr, r"node\d/gpu\d.*node\d/gpu\d")


    def test_nodes_without_a_network_name_two_ends(self):
        for op in ("all_reduce", "all_gather", "broadcast", "all_to_all", "barrier"):
            result = self.flyover("bench", op, "-t", "dgx-h100:2", "--set", "fabric.type=none")
            self.assertEqual((result.returncode, result.stdout), (1, ""))
            self.assertRegex(result.stderr, r"^node0/gpu\d and node1/gpu\d cannot talk: ")

    def test_presets_have_no_lines(self):
        self.fails(2, 'tpu-v4:2: fabric "rail-optimized": node type "tpu-v4" has no NICs to join it by',
                   "topo", "tpu-v4:2")

    def test_a_graph_in_pieces_names_two_ends(self):
        self.write("t.json", '{"gpu": "H100-SXM", "vertices": [{"name": "a", "kind": "gpu"},'
                             ' {"name": "b", "kind": "gpu"}], "edges": []}')
        result = self.flyover("topo", "t.json")
        self.assertEqual((result.returncode, result.stderr), (1, "t.json: no path joins a and b\n"))

    def test_latencies_that_would_overflow(self):
        self.refuses('{"node": {"preset": "dgx-h100"}, "nodes": 2,\n'
                     ' "overrides": [{"select": "link[kind=host-leaf]", "latency": "9000000 s"}]}',
                     't.json:2:62: /overrides/0/latency: expected at most 1 s for one link, got "9000000 s"')

    def test_both_directions_are_asked_for_by_name(self):
        node = '{"node": {"preset": "dgx-h100", "scale_up": {%s}}}'
        self.refuses(node % '"bandwidth": "450 GB/s", "bandwidth_bidirectional": "900 GB/s"',
                     "t.json:1:59: /node/scale_up/bandwidth: "
                     "give either bandwidth (one direction) or bandwidth_bidirectional")
        self.write("t.json", node % '"bandwidth": "450 GB/s"')
        one_way = self.succeeds("topo", "t.json")
        self.write("t.json", node % '"bandwidth_bidirectional": "900 GB/s"')
        self.assertEqual(self.succeeds("topo", "t.json"), one_way)


class Files(CliTest):
    def test_missing_files_and_folders(self):
        (self.folder / "folder").mkdir()
        for topology in ("no.json", "folder"):
            why = "there is no such file" if topology == "no.json" else "is a directory, expected a file"
            self.fails(2, f"{topology}: {why}", "topo", topology)
            self.fails(2, f"{topology}: {why}", "run", "-t", "dgx-h100", "-w", topology)

    def test_a_gibibyte_of_garbage_ends_at_its_first_byte(self):
        with open(self.folder / "garbage.json", "wb") as file:
            file.truncate(1 << 30)  # Zeros, without taking up the disk.
        self.fails(2, 'garbage.json:1:1: expected a value, got the byte 0x00', "topo", "garbage.json")

    def test_more_than_a_gibibyte_is_refused(self):
        with open(self.folder / "huge.json", "wb") as file:
            file.write(b"[")
            file.truncate((1 << 30) + 1)
        result = self.flyover("topo", "huge.json")
        self.assertEqual((result.returncode, result.stdout), (2, ""))

    def test_too_many_values_end_before_memory_does(self):
        with open(self.folder / "many.json", "w", encoding="ascii") as file:
            file.write("[" + "1," * (1 << 25))
        self.fails(2, f"many.json:1:{1 << 26}: more than 33554432 values", "topo", "many.json")

    def test_stdin(self):
        self.fails(2, '<stdin>:1:1: expected a value, got "hello"', "run", "-t", "dgx-h100", "-w", "-", stdin="hello")
        self.fails(2, "--topology and --workload cannot both be standard input", "run", "-t", "-", "-w", "-")


class Workloads(CliTest):
    def refuses(self, text, message, status=2):
        self.write("w.json", text)
        self.fails(status, message, "run", "-t", "dgx-h100", "-w", "w.json")

    def test_groups(self):
        groups = '{"groups": {"g": [[%s]]}, "collectives": [{"op": "all_reduce", "bytes": "1 GiB", "group": "g"}]}'
        self.refuses(groups % "0,9", "w.json:1:22: /groups/g/0/1: expected a whole number from 0 to 7, got 9")
        self.refuses(groups % "0,1,1", "w.json:1:24: /groups/g/0/2: rank 1 is named twice")

    def test_ranks_that_are_not_there(self):
        self.refuses('{"ranks": 16, "programs": []}',
                     "w.json:1:11: /ranks: the workload has 16 ranks, but the topology has 8 GPUs")

    def test_empty_workloads(self):
        self.refuses("{}", 'w.json:1:1: expected a workload with "collectives", "programs" or "training"')
        self.refuses('{"collectives": []}', "w.json:1:17: /collectives: expected at least one collective")

    def test_sizes(self):
        call = '{"collectives": [{"op": "all_reduce", "bytes": "%s", "group": "all"}]}'
        place = "w.json:1:48: /collectives/0/bytes: "
        size = 'such as "128 MiB" or "8 B"'
        self.refuses(call % "0 B", place + f'expected a size above zero {size}, got "0 B"')
        self.refuses(call % "-1 B", place + f'expected a size of zero or more {size}, got "-1 B"')
        self.refuses(call % "9999999999 GiB",
                     place + f'expected a size {size}, got "9999999999 GiB": it is more than 2^63 - 1 bytes')

    def test_times_beyond_the_clock(self):
        # Without protocols in the way: 7/4 of 2^63 bytes at 450 GB/s.
        self.write("w.json", '{"collectives": [{"op": "all_reduce", "bytes": "9223372036854775807 B"}]}')
        self.fails(2, "3.59e+07 s is longer than simulated time can hold (106 days)",
                   "run", "-t", "dgx-h100", "-w", "w.json", "-l", "ideal")
        ops = '{"ranks": 8, "programs": [{"ranks": "0-7", "ops": [%s]}]}'
        self.refuses(ops % '{"op": "compute", "flops": "1e300 FLOP"}',
                     "1.26e+285 s is longer than simulated time can hold (106 days)")
        self.refuses(ops % '{"op": "delay", "duration": "9300000 s"}',
                     'w.json:1:80: /programs/0/ops/0/duration: expected a duration such as "1.2 us" or "3 ms", '
                     'got "9300000 s": it is longer than simulated time can hold (106 days)')
        delay = '{"op": "delay", "duration": "9000000 s"}'
        self.refuses(ops % f"{delay}, {delay}", "the run is longer than simulated time can hold (106 days)")

    def test_ids_and_cycles(self):
        ops = '{"ranks": 8, "programs": [{"ranks": "0-7", "ops": [%s, %s]}]}'
        delay = '{"id": "%s", "op": "delay", "duration": "1 us", "after": [%s]}'
        self.refuses(ops % (delay % ("a", ""), delay % ("a", "")),
                     'w.json:1:120: /programs/0/ops/1/id: the id "a" is taken by operation 0 of this program')
        self.refuses(ops % (delay % ("a", '"b"'), delay % ("b", '"a"')),
                     "w.json:1:51: /programs/0/ops: operations wait for each other: a -> b -> a")

    def test_impossible_training_layouts(self):
        self.refuses('{"training": {"model": "llama3-70b"}}', 'w.json:1:14: /training: "seq" is missing')
        self.refuses('{"training": {"model": "llama3-70b", "seq": 8192, "global_batch": 8, "layout": {"tp": 8, "pp": 2}}}',
                     "w.json:1:80: /training/layout: llama3-70b cannot be laid out so: tensor 8 x context 1 x pipeline 2 x "
                     "data 1 are 16 ranks, but there are 8 GPUs")

    def test_a_missing_member_is_a_report_and_status_1(self):
        self.refuses('{"ranks": 8, "groups": {"g": [[0,1]]}, "programs": [{"ranks": "0", "ops": '
                     '[{"id": "a", "op": "all_reduce", "bytes": "1 MB", "group": "g"}]}]}',
                     "deadlock at 0 ps: 1 of 1 operations cannot run\n"
                     '  "a" on group "g": rank 0 waits for rank 1, which has no program', status=1)

    def test_nccl_variables(self):
        self.write("w.json", GOOD)
        result = self.flyover("run", "-t", "dgx-h100", "-w", "w.json", "--set", "nccl.NCCL_AGLO=Ring")
        self.assertEqual(result.returncode, 2)
        self.assertTrue(result.stderr.startswith("--set nccl.NCCL_AGLO: "), result.stderr)
        self.assertIn('did you mean "NCCL_ALGO"?', result.stderr)

    def test_unknown_libraries(self):
        self.write("w.json", GOOD)
        self.fails(2, 'no communication library "ideel", did you mean "ideal"?; '
                      "there are ideal, mscclpp, mscclpp-0.7, nccl, nccl-2.17, nccl-2.18, nccl-2.19, nccl-2.21, "
                      "nccl-2.23, nccl-2.25, nccl-2.27, nccl-2.28, nccl-2.29, nccl-2.30, nccl-2.8, rccl, "
                      "rccl-2.27",
                   "run", "-t", "dgx-h100", "-w", "w.json", "-l", "ideel")

    def test_reports_are_of_a_later_version(self):
        self.fails(2, "flyover run --report is not part of this version",
                   "run", "-t", "dgx-h100", "-w", "w.json", "--report", "r.html")
