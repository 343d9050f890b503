"""Does `flyover calibrate` write what --params takes, and say what is wrong with a log?"""
import json
import unittest

from harness import CliTest

TITLES = "# size count type redop root time algbw busbw #wrong\n"


class Calibrate(CliTest):
    def log(self, name="a.log", factor=1.0, command="# all_reduce_perf -b 8 -e 16G\n"):
        """A table as slow as `factor` times what flyover predicts for dgx-h100."""
        bench = json.loads(self.succeeds("bench", "all_reduce", "-t", "dgx-h100", "--json", "-"))
        rows = [f"{row['bytes']} {row['bytes'] // 4} float sum -1 {row['time_us'] * factor:.2f} 0 0 0\n"
                for row in bench["rows"]]
        return self.write(name, command + TITLES + "".join(rows))

    def test_writes_parameters_that_bench_and_run_use(self):
        log = self.log(factor=1.05)
        text = self.succeeds("calibrate", log, "-t", "dgx-h100", "-o", "p.json")
        self.assertRegex(text, r"(?m)^launch +[+-]\d+\.\d\d us")
        self.assertRegex(text, r"(?m)^network_bandwidth +1\.000 +8\.0 % +no: no call crosses the network")
        self.assertRegex(text, r"(?m)^domain_bandwidth +0\.9\d\d +\d\.\d % +yes")
        self.assertRegex(text, r"(?m)^larger +\d+ +4\.\d % +0\.\d %")
        params = json.loads((self.folder / "p.json").read_text())
        self.assertEqual(params["format"], "flyover-params-1")
        self.assertEqual(params["library"]["name"], "nccl")
        self.assertEqual(params["logs"], [{"name": "a.log", "collective": "all_reduce", "ranks": 8, "rows": 32}])

        bench = ("bench", "all_reduce", "-t", "dgx-h100", "-b", "16G", "--json", "-")
        plain, fitted = (json.loads(self.succeeds(*bench, *more)) for more in ((), ("--params", "p.json")))
        self.assertAlmostEqual(fitted["rows"][0]["time_us"] / plain["rows"][0]["time_us"], 1.05, delta=0.01)
        self.assertEqual([i["name"] for i in fitted["inputs"] if i["role"] == "params"], ["p.json"])
        self.assertEqual([i for i in plain["inputs"] if i["role"] == "params"], [])

        workload = self.write("w.json", '{"collectives": [{"op": "all_reduce", "bytes": "1 GiB"}]}')
        result = json.loads(self.succeeds(
            "run", "-t", "dgx-h100", "-w", workload, "--params", "p.json", "--json", "-"))
        self.assertIn("params", [i["role"] for i in result["inputs"]])

    def test_same_log_same_file(self):
        log = self.log()
        command = ("calibrate", log, "-t", "dgx-h100", "-o", "-")
        self.assertEqual(self.succeeds(*command), self.succeeds(*command))

    def test_another_library_is_warned_of(self):
        self.succeeds("calibrate", self.log(), "-t", "dgx-h100", "-o", "p.json", "--quiet")
        params = json.loads((self.folder / "p.json").read_text())
        params["library"]["version"] = "1.0"
        self.write("p.json", json.dumps(params))
        workload = self.write("w.json", '{"collectives": [{"op": "all_reduce", "bytes": "1 GiB"}]}')
        result = json.loads(self.succeeds(
            "run", "-t", "dgx-h100", "-w", workload, "--params", "p.json", "--json", "-"))
        self.assertTrue(any(w.startswith("p.json was fitted with nccl 1.0, and is used with nccl")
                            for w in result["warnings"]), result["warnings"])

    def test_wrong_logs(self):
        self.fails(2, "nowhere.log: there is no such file", "calibrate", "nowhere.log", "-t", "dgx-h100")
        log = self.write("x.log", TITLES + "1024 64 float none -1 20 0 0 0\n")
        self.fails(2, "x.log:1: cannot tell the collective: the log names no program, and all_gather_perf and "
                   "alltoall_perf print such columns; say which with --collective",
                   "calibrate", log, "-t", "dgx-h100")
        self.succeeds("calibrate", log, "-t", "dgx-h100", "--collective", "all_gather")
        self.fails(2, "x.log: ran on 16 GPUs, but the topology has 8",
                   "calibrate", log, "-t", "dgx-h100", "--collective", "all_gather", "-g", "16")
        result = self.flyover("calibrate", log, "-t", "dgx-h100", "--collective", "all_gathre")
        self.assertEqual(result.returncode, 2)
        self.assertIn('--collective: no collective "all_gathre", did you mean "all_gather"?', result.stderr)
        self.fails(2, "only one of LOG and --topology can be standard input",
                   "calibrate", "-", "-t", "-")

    def test_wrong_params(self):
        self.write("p.json", "{}")
        self.fails(2, 'p.json:1:1: expected a params file, an object with "format": "flyover-params-1"',
                   "bench", "all_reduce", "-t", "dgx-h100", "--params", "p.json")


if __name__ == "__main__":
    unittest.main()
