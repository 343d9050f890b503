"""Is `flyover bench` what a reader of nccl-tests expects?"""
import json
import re

from harness import CliTest


class Bench(CliTest):
    def rows(self, *arguments):
        return json.loads(self.succeeds("bench", *arguments, "--json", "-"))["rows"]

    def table(self, *arguments):
        lines = self.succeeds("bench", *arguments).splitlines()
        return [line.split() for line in lines if not line.startswith("#")]

    def test_columns_are_those_of_nccl_tests(self):
        head = self.succeeds("bench", "all_reduce", "-t", "dgx-h100", "-b", "8", "-e", "8").splitlines()[1]
        self.assertEqual(head.split(), [
            "#", "size(B)", "count", "type", "redop", "root", "time(us)", "algbw(GB/s)",
            "busbw(GB/s)", "range(80%)", "algorithm", "protocol", "channels", "limited", "by"])

    def test_sizes_go_by_factor_or_by_step(self):
        sizes = lambda *a: [row["bytes"] for row in self.rows("all_reduce", "-t", "dgx-h100", *a)]
        self.assertEqual(sizes("-b", "1K", "-e", "20K", "-f", "4"), [1024, 4096, 16384])
        self.assertEqual(sizes("-b", "1K", "-e", "3K", "-i", "1K"), [1024, 2048, 3072])
        self.assertEqual(len(sizes()), 32)  # 8 bytes to 16 GiB.
        self.assertEqual(sizes("-b", "1 MB", "-e", "1 MB"), [1_000_000])

    def test_one_process_for_all_gpus_starts_later(self):
        on = ("all_reduce", "-t", "dgx-h100", "-b", "8", "-e", "8")
        usual = self.rows(*on)[0]["time_us"]
        self.assertGreater(self.rows(*on, "--set", "library.stack=one-process")[0]["time_us"], usual + 10)
        self.fails(2, "--set stack: expected a stack out of process-per-gpu, one-process, pytorch, graph, got \"threads\"",
                   "bench", *on, "--set", "library.stack=threads")

    def test_a_barrier_has_no_size(self):
        rows = self.rows("barrier", "-t", "dgx-h100:2")
        self.assertEqual([(row["bytes"], row["busbw_GBps"], row["bottleneck"]) for row in rows], [(0, 0, "latency")])
        self.assertGreater(rows[0]["time_us"], 1)

    def test_counts_are_elements_of_one_part(self):
        row = self.table("all_reduce_perf", "-t", "dgx-h100", "-b", "1M", "-e", "1M")[0]
        self.assertEqual(row[:5], ["1048576", "262144", "float", "sum", "-1"])
        row = self.table("alltoall_perf", "-t", "dgx-h100", "-b", "1M", "-e", "1M", "-d", "half")[0]
        self.assertEqual(row[:5], ["1048576", "65536", "half", "none", "-1"])
        row = self.table("broadcast", "-t", "dgx-h100", "-b", "1M", "-e", "1M", "-r", "3")[0]
        self.assertEqual(row[:5], ["1048576", "262144", "float", "none", "3"])

    def test_bandwidths_follow_from_the_time(self):
        for op, factor in (("all_reduce", 2 * 7 / 8), ("all_gather", 7 / 8), ("broadcast", 1)):
            for row in self.rows(op, "-t", "dgx-h100", "-b", "1M", "-e", "1G", "-f", "32"):
                algbw = row["bytes"] / row["time_us"] / 1e3
                self.assertAlmostEqual(row["algbw_GBps"] / algbw, 1, places=9)
                self.assertAlmostEqual(row["busbw_GBps"] / algbw, factor, places=9)

    def test_rows_tell_the_alternatives(self):
        row = self.rows("all_reduce", "-t", "dgx-h100", "-b", "1G", "-e", "1G")[0]
        self.assertEqual(list(row), [
            "bytes", "time_us", "low_us", "high_us", "algbw_GBps", "busbw_GBps", "busbw_low_GBps", "busbw_high_GBps",
            "algorithm", "protocol", "channels", "bottleneck", "range_rows", "range_sites", "alternatives",
            "best"])
        times = [a["time_us"] for a in row["alternatives"]]
        self.assertGreater(len(times), 2)
        self.assertEqual(times, sorted(times))

    def test_every_time_has_a_range(self):
        for row in self.rows("all_reduce", "-t", "dgx-h100:2"):
            for time in (row, *row["alternatives"]):
                self.assertLessEqual(time["low_us"], time["time_us"])
                self.assertGreaterEqual(time["high_us"], time["time_us"])
            self.assertAlmostEqual(row["busbw_low_GBps"] * row["high_us"], row["busbw_GBps"] * row["time_us"])
            self.assertAlmostEqual(row["busbw_high_GBps"] * row["low_us"], row["busbw_GBps"] * row["time_us"])
            self.assertGreaterEqual(row["range_rows"], 20)
            self.assertGreaterEqual(row["range_sites"], 3)

    def test_ranges_do_not_jump(self):
        rows = self.rows("all_reduce", "-t", "dgx-h100", "--set", "nccl.NCCL_ALGO=Ring")
        for end in ("low_us", "high_us"):
            shares = [row[end] / row["time_us"] for row in rows]
            for a, b in zip(shares, shares[1:]):
                self.assertLess(max(a / b, b / a), 1.25)

    def test_what_was_not_measured_is_told(self):
        on = ("all_reduce", "-b", "1G", "-e", "1G")
        self.assertNotIn("Outside", self.succeeds("bench", *on, "-t", "dgx-h100"))
        out = json.loads(self.succeeds("bench", *on, "-t", "vr-nvl72", "--json", "-"))
        self.assertIn("no measurement over nvlink6", out["validity"])
        text = self.succeeds("bench", *on, "-t", "dgx-h100:512", COLUMNS="80")
        self.assertRegex(text, r"(?m)^# Outside of what was measured: 4096 GPUs: the largest measured system of ")

    def test_nccl_variables_steer_the_choice(self):
        on = ("all_reduce", "-t", "dgx-h100", "-b", "1G", "-e", "1G")
        row = self.rows(*on, "--set", "nccl.NCCL_ALGO=Ring", "--set", "nccl.NCCL_PROTO=LL")[0]
        self.assertEqual((row["algorithm"], row["protocol"]), ("ring", "LL"))
        # The process's own environment does not.
        plain = self.succeeds("bench", *on)
        self.assertEqual(self.succeeds("bench", *on, NCCL_ALGO="Ring"), plain)

    def test_a_bad_default_shows(self):
        on = ("all_reduce", "-t", "dgx-h100", "-b", "64M", "-e", "16G")
        ring = ("--set", "nccl.NCCL_ALGO=Ring")
        faster = r"(?m)^# Predicted faster, up to (\d\.\d\d) x, at 64 MiB to 16 GiB: nvls Simple " \
                 r"\(NCCL_ALGO=NVLS NCCL_PROTO=Simple\)$"
        text = self.succeeds("bench", *on, *ring)
        self.assertRegex(text, faster)
        # NVLS of eight GPUs against their ring: 480 and 368 GB/s.
        self.assertAlmostEqual(float(re.search(faster, text)[1]), 480 / 368, delta=0.1)
        self.assertNotIn("Predicted faster", self.succeeds("bench", *on))
        # One size is no span.
        one = self.succeeds("bench", "all_reduce", "-t", "dgx-h100", "-b", "1G", "-e", "1G", *ring)
        self.assertRegex(one, r"(?m)^# Predicted faster, up to \d\.\d\d x, at 1 GiB: nvls Simple ")

    def test_the_best_plan_is_no_slower_and_its_variables_bring_it_about(self):
        on = ("all_reduce", "-t", "dgx-h100:2", "-f", "64")
        for row in self.rows(*on, "--set", "nccl.NCCL_ALGO=Tree"):
            best = row["best"]
            self.assertEqual(list(best), ["algorithm", "protocol", "time_us", "variables"])
            self.assertLessEqual(best["time_us"], row["time_us"])
            settings = [word for pair in best["variables"].split() for word in ("--set", "nccl." + pair)]
            size = ("-b", row["bytes"], "-e", row["bytes"])
            told = self.rows("all_reduce", "-t", "dgx-h100:2", *size, *settings)[0]
            self.assertEqual([told[k] for k in ("algorithm", "protocol", "time_us")],
                             [best[k] for k in ("algorithm", "protocol", "time_us")])

    def test_fewer_gpus(self):
        rows = self.rows("all_reduce", "-t", "dgx-h100", "-g", "4", "-b", "1G", "-e", "1G")
        self.assertAlmostEqual(rows[0]["busbw_GBps"] / rows[0]["algbw_GBps"], 2 * 3 / 4)
        self.fails(2, "--gpus: expected 1 to 8, which dgx-h100 has, got 9",
                   "bench", "all_reduce", "-t", "dgx-h100", "-g", "9")

    def test_settings_change_the_cluster(self):
        on = ("sendrecv", "-t", "dgx-h100:2", "-b", "1G", "-e", "1G")
        slow = self.rows(*on, "--set", "fabric.link.bandwidth=100 Gb/s", "--set",
                         'overrides=[{"select": "link[kind=host-leaf]", "bandwidth": "100 Gb/s"}]')
        self.assertGreater(slow[0]["time_us"], 2 * self.rows(*on)[0]["time_us"])

    def test_inputs_are_named_with_digests_and_overrides(self):
        out = json.loads(self.succeeds("bench", "all_reduce", "-t", "dgx-h100", "-b", "8", "-e", "8", "--set",
                                       "nccl.NCCL_ALGO=Ring", "--json", "-"))
        self.assertEqual(out["format"], "flyover-bench-1")
        self.assertEqual([i["role"] for i in out["inputs"]], ["topology", "library"])
        self.assertEqual(out["inputs"][1]["overrides"], ["nccl.NCCL_ALGO=Ring"])

    def test_wrong_words(self):
        on = ("-t", "dgx-h100")
        names = ("all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce, scatter, gather, "
                 "sendrecv, barrier")
        self.fails(2, f'flyover bench: no collective "all_redcue", did you mean "all_reduce"? There are {names}',
                   "bench", "all_redcue", *on)
        self.fails(2, '--dtype: no data type "floot", did you mean "float"? There are int8, uint8, int32, '
                      "uint32, int64, uint64, half, float, double, bfloat16, f8e4m3, f8e5m2",
                   "bench", "all_reduce", *on, "-d", "floot")
        self.fails(2, "-b 2K is more than -e 1K", "bench", "all_reduce", *on, "-b", "2K", "-e", "1K")
        self.fails(2, "-f: expected 2 or more, got 1", "bench", "all_reduce", *on, "-f", "1")
        self.fails(2, "-i 8 makes more than 10000 sizes",
                   "bench", "all_reduce", *on, "-b", "8", "-e", "16G", "-i", "8")
        self.fails(2, "--set ranks: flyover bench reads no workload",
                   "bench", "all_reduce", *on, "--set", "ranks=8")
        self.fails(2, '--set: expected PATH=VALUE, got "NCCL_ALGO"',
                   "bench", "all_reduce", *on, "--set", "NCCL_ALGO")


class Experts(CliTest):
    V3 = ("-t", "hgx-h800:8", "-m", "deepseek-v3")

    def rows(self, op, *arguments):
        return json.loads(self.succeeds("bench", op, *self.V3, *arguments, "--json", "-"))["rows"]

    def test_the_head_and_a_row_per_group_and_limit(self):
        lines = self.succeeds("bench", "moe_dispatch", *self.V3, "--ep", "16,64", "--limit", "2,none").splitlines()
        self.assertEqual(lines[0], "# flyover 0.1.0: moe_dispatch on hgx-h800:8, normal of deepep-v1, 4096 tokens of 7168 "
                                   "values per rank, 8 of 256 experts")
        self.assertEqual([line.split()[:3] for line in lines[3:]],
                         [["16", "2", "2"], ["16", "2", "none"], ["64", "8", "2"], ["64", "8", "none"]])

    def test_bandwidth_is_logical_bytes_over_the_time_of_the_kernel(self):
        for op in ("moe_dispatch", "moe_combine"):
            for row in self.rows(op, "--ep", "8,16,64"):
                side = "nvlink" if row["nodes"] == 1 else "network"
                self.assertEqual(row["bottleneck_side"], "NVLink" if row["nodes"] == 1 else "RDMA")
                rate = row[f"logical_{side}_bytes"]["mean"] / row["kernel_us"] / 1e3
                self.assertAlmostEqual(row["bottleneck_GBps"] / rate, 1, places=6)
                notify = row["time_us"] - row["kernel_us"]
                self.assertAlmostEqual(notify, 50 if op == "moe_dispatch" else 0, places=3)

    def test_a_limit_of_nodes_saves_network_and_hardly_any_nvlink(self):
        limited, free = self.rows("moe_dispatch", "--ep", "64", "--limit", "4,none")
        self.assertAlmostEqual(free["network_bytes"]["mean"] / limited["network_bytes"]["mean"], 1.34, delta=0.005)
        self.assertAlmostEqual(limited["nvlink_bytes"]["mean"] / free["nvlink_bytes"]["mean"], 0.976, delta=0.005)

    def test_routing_without_a_model(self):
        out = self.succeeds("bench", "moe_combine", "-t", "hgx-h800:2", "--experts", "64", "--chosen", "6", "--hidden", "2048",
                            "--gate", "group-max", "--groups", "nodes", "--limit", "1", "--tokens", "100", "--ep", "16")
        self.assertIn("100 tokens of 2048 values per rank, 6 of 64 experts", out)
        self.assertEqual(out.splitlines()[3].split()[7], "1.000")  # Nodes per token.

    def test_drawn_tokens_differ_by_seed_only(self):
        draw = lambda seed: self.rows("moe_dispatch", "--ep", "16", "--tokens", "64", "--sampled", "--seed", seed)[0]
        self.assertEqual(draw("3"), draw("3"))
        self.assertNotEqual(draw("3")["kernel_us"], draw("4")["kernel_us"])
        self.assertEqual((draw("3")["basis"], draw("3")["balanced"]), ("sampled, seed 3", False))

    def test_fused_kernels_work_over_nvlink(self):
        rows = json.loads(self.succeeds("bench", "moe_fused", "-t", "gb200-nvl72", "-m", "deepseek-v3", "--ep", "8,64",
                                        "--json", "-"))["rows"]
        self.assertEqual([row["bottleneck_side"] for row in rows], ["NVLink", "NVLink"])
        rows = self.rows("moe_fused", "--ep", "8,16")
        self.assertNotIn("problem", rows[0])
        self.assertIn("spans 2 nodes", rows[1]["problem"])

    def test_options_of_the_other_kind_are_refused(self):
        self.fails(2, "--ep is for moe_dispatch, moe_combine and moe_fused",
                   "bench", "all_reduce", "-t", "dgx-h100", "--ep", "8")
        self.fails(2, "--minbytes is for other collectives than moe_dispatch",
                   "bench", "moe_dispatch", *self.V3, "-b", "8")

    def test_bad_options(self):
        bench = ("bench", "moe_dispatch", *self.V3)
        self.fails(2, '--mode: there is no "lowlatency", did you mean "low-latency"? There are nccl, normal, direct, '
                      "low-latency, fused", *bench, "--mode", "lowlatency")
        self.fails(2, "--mode fused: moe_dispatch is one half of it, see moe_fused", *bench, "--mode", "fused")
        self.fails(2, "--ep: expected 2 to 64 ranks, the topology's GPUs, got 128", *bench, "--ep", "128")
        self.fails(2, '--limit: expected a number above zero, got "few"', *bench, "--limit", "few")
        self.fails(2, "--seed: draws nothing without --sampled", *bench, "--seed", "1")
        self.fails(2, "llama3-8b has no experts", "bench", "moe_dispatch", "-t", "dgx-h100", "-m", "llama3-8b")
        self.fails(2, "expected --model, or --experts above zero", "bench", "moe_dispatch", "-t", "dgx-h100")
        self.fails(2, 'flyover bench: no collective "moe_dispach", did you mean "moe_dispatch"? There are all_reduce, '
                      "all_gather, reduce_scatter, all_to_all, broadcast, reduce, scatter, gather, sendrecv, barrier, "
                      "moe_dispatch, moe_combine, moe_fused", "bench", "moe_dispach", "-t", "dgx-h100")
