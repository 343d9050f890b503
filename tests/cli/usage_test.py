"""Is a wrong command line told in one clear line?"""
from harness import CliTest

COMMANDS = "run, bench, topo, plan, sweep, compare, validate, calibrate, list"


class Usage(CliTest):
    def test_help_and_version_go_to_stdout(self):
        self.assertIn("bench", self.succeeds("--help"))
        self.assertIn("--timeline", self.succeeds("run", "--help"))
        self.assertRegex(self.succeeds("--version"), r"^flyover \d+\.\d+\.\d+\n$")

    def test_no_command(self):
        self.fails(2, "flyover: expected a command (see flyover --help)")

    def test_unknown_command_offers_the_nearest(self):
        self.fails(2, f'flyover: no command "bnech", did you mean "bench"? There are {COMMANDS}', "bnech")
        self.fails(2, f'flyover: no command "qqqqqq". There are {COMMANDS}', "qqqqqq")

    def test_commands_of_later_versions_are_no_typos(self):
        for name in ("check", "explain", "import"):
            self.fails(2, f"flyover {name} is not part of this version", name)
            self.fails(2, f"flyover {name} is not part of this version", name, "--gpus", "8")
            self.fails(2, f"flyover {name} is not part of this version", name, "--help")

    def test_unknown_option_offers_the_nearest(self):
        self.fails(2, 'flyover run: no option "--tpology", did you mean "--topology"? (see flyover run --help)',
                   "run", "--tpology", "dgx-h100", "-w", "w.json")
        self.fails(2, 'flyover: no option "--verison", did you mean "--version"? (see flyover --help)',
                   "--verison")

    def test_missing_option(self):
        self.fails(2, "flyover run: --workload is required (see flyover run --help)",
                   "run", "-t", "dgx-h100")

    def test_surplus_word(self):
        self.fails(2, 'flyover topo: does not know what to do with "more" (see flyover topo --help)',
                   "topo", "dgx-h100", "more")

    def test_log_level(self):
        self.fails(2, '--log-level: no level "infos", did you mean "info"? '
                      "There are trace, debug, info, warn, error, off",
                   "list", "presets", "--log-level", "infos")
