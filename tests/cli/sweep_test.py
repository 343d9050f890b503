"""Does `flyover sweep` evaluate, resume, report and refuse as promised?"""
import csv
import io
import json
import re
import sqlite3

from harness import SOURCE, CliTest

CASES = SOURCE / "tests" / "cases" / "sweeps"
GRID = {
    "name": "grid", "topology": "dgx-h100:2", "workload": str(CASES / "llama3-8b.json"),
    "vary": {"workload.training.layout.tp": [1, 2, 3, 4, 8], "workload.training.layout.pp": [1, 2],
             "topology.fabric.oversubscription": [1, 2], "workload.training.recompute": ["none", "full"]},
    "where": "fits_in_memory", "objective": "tokens_per_dollar", "pareto": ["tokens_per_s", "memory_GiB"],
    "find": [{"name": "least memory above 30 % MFU", "minimise": "memory_GiB", "where": "mfu > 0.3"}],
    "evaluate": "estimate", "top": 3,
}


class Sweep(CliTest):
    def write_grid(self, name="grid.json", **changes):
        (self.folder / name).write_text(json.dumps({k: v for k, v in {**GRID, **changes}.items() if v is not None}))

    def sweep(self, *arguments):
        return self.succeeds("sweep", "grid.json", *arguments)

    def table(self, *arguments):
        return self.sweep("--csv", "-", *arguments)

    def test_a_grid(self):
        self.write_grid()
        text = self.sweep()
        self.assertRegex(text, r"^grid: 40 points: \d+ done, .*8 invalid")
        self.assertRegex(text, r"best: most tokens_per_dollar\npoint +tokens_per_dollar +tp ")
        self.assertIn("Pareto front", text)
        self.assertIn("which input matters for tokens_per_dollar", text)
        self.assertRegex(text, r"least memory above 30 % MFU: \d+ of \d+ points hold; least memory_GiB is ")
        rows = sqlite3.connect(self.folder / "grid.db").execute("SELECT count(*) FROM results").fetchone()
        self.assertEqual(rows, (40,))
        self.assertEqual(self.sweep("--report-only"), text)

    def test_inputs_and_outputs_in_csv_and_json(self):
        self.write_grid()
        rows = list(csv.DictReader(io.StringIO(self.table("--json", "grid-out.json"))))
        self.assertEqual([row["number"] for row in rows], [str(i) for i in range(40)])
        done = [row for row in rows if row["status"] == "done"]
        for row in done:
            self.assertAlmostEqual(float(row["tokens_per_s"]) / 16 / float(row["tokens_per_s_per_gpu"]), 1)
            self.assertAlmostEqual(float(row["cost_per_hour"]), 16 * 2.95)
            self.assertAlmostEqual(float(row["tokens_per_s"]) * 3600 / float(row["cost_per_hour"]) /
                                   float(row["tokens_per_dollar"]), 1)
        self.assertTrue(all("tensor 3" in row["reason"] for row in rows if row["tp"] == "3"))
        self.assertEqual(len(json.loads((self.folder / "grid-out.json").read_text())["points"]), 40)

    def test_the_same_table_with_any_number_of_jobs(self):
        for evaluate in ("estimate", "replay", "adaptive"):
            with self.subTest(evaluate):
                self.write_grid(evaluate=evaluate)
                tables = {self.table("--jobs", str(jobs), "-o", f"{evaluate}-{jobs}.db") for jobs in (1, 2, 4)}
                self.assertEqual(len(tables), 1)

    def test_adaptive_finds_what_all_replays_find(self):
        self.write_grid(evaluate="replay")
        full = {row["number"]: row for row in csv.DictReader(io.StringIO(self.table("-o", "full.db")))}
        self.write_grid(evaluate="adaptive")
        rows = list(csv.DictReader(io.StringIO(self.table("-o", "some.db"))))
        self.assertTrue(any(row["status"] == "excluded" for row in rows))
        self.assertIn("replays saved: ", self.sweep("-o", "some.db", "--report-only"))

        def best(table):
            done = [row for row in table if row["status"] == "done"]
            return sorted(done, key=lambda row: (-float(row["tokens_per_dollar"]), int(row["number"])))[:3]
        self.assertEqual(best(rows), best(full.values()))

    def test_resume_and_what_is_there_already(self):
        self.write_grid()
        table = self.table()
        self.fails_with(2, "grid.db", "sweep", "grid.json")
        self.assertEqual(self.table("--resume"), table)
        self.write_grid(evaluate="replay")
        self.fails_with(2, "grid.db", "sweep", "grid.json", "--resume")
        self.write_grid()
        self.fails_with(2, "grid.db", "sweep", "grid.json", "--resume", "--set", "prices.gpu_hour=1")
        self.assertEqual(self.table("--report-only"), table)

    def fails_with(self, status, part, *arguments):
        result = self.flyover(*arguments)
        self.assertEqual((result.returncode, result.stdout), (status, ""), result.stderr)
        self.assertIn(part, result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1, result.stderr)

    def test_settings_hold_at_every_point(self):
        self.write_grid()
        rows = list(csv.DictReader(io.StringIO(self.table("--set", "prices.gpu_hour=1", "--set", "nodes=4"))))
        self.assertEqual({(row["gpus"], row["cost_per_hour"]) for row in rows if row["status"] == "done"},
                         {("32", "32")})

    def test_bad_inputs_write_nothing(self):
        def fails(part, *arguments, **changes):
            self.write_grid(**changes)
            with self.subTest(part):
                self.fails_with(2, part, "sweep", "grid.json", *arguments)
                self.assertEqual([path.name for path in self.folder.iterdir()], ["grid.json"])

        fails('there is no input "topolgy", did you mean "topology"?', vary={"topolgy.nodes": [1]})
        fails("no point can be evaluated: ", vary={"workload.training.layout.tpp": [1, 2]})
        fails('did you mean "dgx-h100"', topology="dgx-h10")
        fails("nowhere.json", workload="nowhere.json")
        fails("/objective", objective="tokens_per_second")
        fails("only an \"objective\" tells what can be among the best", objective=None, evaluate="adaptive")
        fails("gets no better as steps get longer", objective={"maximise": "step_s"}, evaluate="adaptive")
        fails("make it a value in \"derived\"", objective={"maximise": "mfu * tp"}, evaluate="adaptive")
        fails('there is no GPU "H10"', "--set", "prices.gpu_hours.H10=1")
        fails("gpu_hor: is not a known option", prices={"gpu_hor": 1})
        fails("--report-only runs nothing", "--report-only", "--resume")
        fails("--set: expected PATH=VALUE", "--set", "prices.gpu_hour")
        self.fails_with(2, "nothing.json", "sweep", "nothing.json")
        self.fails_with(2, "none.db", "sweep", "grid.json", "-o", "none.db", "--report-only")

    def test_shipped_sweeps(self):
        """Small versions: one point of every axis but two."""
        for path in sorted((SOURCE / "configs" / "sweeps").glob("*.json")):
            with self.subTest(path.name):
                text = json.loads(path.read_text())
                del text["$schema"]
                text["workload"] = str(path.parent / text["workload"])
                small = {"dgx-h100:128": "dgx-h100:8", "hgx-h200:256": "hgx-h200:8"}
                if isinstance(text.get("topology"), str):
                    text["topology"] = small[text["topology"]]
                vary = text["vary"]
                if "topology" in vary:
                    vary["topology"] = ["dgx-h100:64", "dgx-b200:28", "gb200-nvl72:2"]
                for key, value in vary.items():
                    values = value if isinstance(value, list) else value["values"]
                    keep = 3 if key in ("topology", "topology.fabric.oversubscription") else 2
                    values[:] = values[-keep:]
                if "deepseek" in text["workload"]:
                    vary["workload.training.layout.ep"] = [4, 8]
                    vary["workload.training.layout.pp"] = {"values": [8]}
                    vary["workload.training.global_batch"] = {"values": [256]}
                    text["where"] = "memory_GiB > 0"
                text["evaluate"] = {"replay": "estimate"}.get(text["evaluate"], text["evaluate"])
                (self.folder / path.name).write_text(json.dumps(text))
                report = self.succeeds("sweep", path.name, "--jobs", "2")
                self.assertRegex(report, r"points: \d+ done")
                self.assertRegex(report, re.escape(text["name"]))
