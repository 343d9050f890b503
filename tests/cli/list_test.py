"""Does `flyover list` name what there is?"""
from harness import CliTest


class List(CliTest):
    def test_every_kind_lists_something(self):
        self.assertIn("dgx-h100", self.succeeds("list", "presets"))
        self.assertIn("nvls-tree", self.succeeds("list", "algorithms"))
        self.assertIn("rail-optimized", self.succeeds("list", "fabrics"))
        self.assertIn("Chrome trace", self.succeeds("list", "formats"))
        self.assertIn("no models in this version", self.succeeds("list", "models"))

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
                      "There are presets, models, algorithms, fabrics, formats",
                   "list", "preset")
