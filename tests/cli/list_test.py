"""Does `flyover list` name what there is?"""
from harness import CliTest


class List(CliTest):
    def test_every_kind_lists_something(self):
        self.assertIn("dgx-h100", self.succeeds("list", "presets"))
        self.assertIn("nvls-tree", self.succeeds("list", "algorithms"))
        self.assertIn("rail-optimized", self.succeeds("list", "fabrics"))
        self.assertIn("Chrome trace", self.succeeds("list", "formats"))
        self.assertIn("llama3.1-405b", self.succeeds("list", "models"))
        self.assertIn("nemo-25", self.succeeds("list", "stacks"))

    def test_models_with_their_sizes(self):
        lines = self.succeeds("list", "models", COLUMNS="200").splitlines()
        rows = {line.split()[0]: " ".join(line.split()) for line in lines}
        self.assertEqual(
            rows["name"], "name parameters active layers hidden heads/kv FFN experts also")
        self.assertEqual(
            rows["llama3.1-405b"],
            "llama3.1-405b 405.9 B 405.9 B 126 16384 128/8 53248 - llama3-405b")
        self.assertEqual(
            rows["deepseek-v3"],
            "deepseek-v3 671.0 B 37.6 B 61 7168 128/latent 18432 8 of 256 x 2048 deepseek-r1, deepseek-v3.1")
        self.assertEqual(
            rows["mixtral-8x7b"], "mixtral-8x7b 46.7 B 12.9 B 32 4096 32/8 - 2 of 8 x 14336")

    def test_every_listed_node_is_a_topology(self):
        nodes = self.succeeds("list", "presets").split("\n\n")[0].splitlines()[2:]
        self.assertGreater(len(nodes), 10)
        for line in nodes:
            name = line.split()[0]
            self.assertTrue(self.succeeds("topo", name).startswith(name), name)

    def test_every_document_of_a_format_is_there(self):
        from harness import SOURCE
        for line in self.succeeds("list", "formats").splitlines()[1:]:
            self.assertTrue((SOURCE / line.split()[-1]).is_file(), line)

    def test_unknown_kind(self):
        self.fails(2, 'flyover list: no list of "preset", did you mean "presets"? '
                      "There are presets, models, algorithms, fabrics, stacks, formats, expert-libraries",
                   "list", "preset")
