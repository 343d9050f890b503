"""Does `flyover topo` tell what a cluster is made of?"""
import json
import xml.etree.ElementTree as xml

from harness import SOURCE, CliTest


class Topo(CliTest):
    def analysis(self, *arguments):
        return json.loads(self.succeeds("topo", *arguments, "--analysis", "-"))

    def test_a_superpod_has_the_published_counts(self):
        pod = SOURCE / "topologies/h100-superpod-4su.json"
        counts = self.analysis(pod)["counts"]
        self.assertEqual((counts["node"], counts["gpu"], counts["leaf"], counts["spine"]), (127, 1016, 32, 16))
        self.assertEqual(self.analysis(pod, "--set", "nodes=63")["counts"]["gpu"], 504)

    def test_the_table(self):
        text = self.succeeds("topo", "dgx-h100")
        self.assertTrue(text.startswith("dgx-h100: 8 GPUs\n\nkind         count\nnode             1\ngpu              8\n"
                                        "nvswitch         4\n"), text)

    def test_the_graph_reads_back_to_the_same_graph(self):
        pod = SOURCE / "topologies/dgx-h100-2node-nic-down.json"
        self.succeeds("topo", pod, "--json", "graph.json")
        again = self.analysis("graph.json")
        first = self.analysis(pod)
        for key in ("counts", "links", "diameter", "bisection_GBps"):
            self.assertEqual(again[key], first[key], key)
        self.assertEqual(sum(link["down"] for link in first["links"]), 2)

    def test_pictures_and_graphs_are_well_formed(self):
        self.succeeds("topo", "dgx-h100:4", "--svg", "p.svg", "--graphml", "p.graphml", "--dot", "p.dot")
        self.assertTrue(xml.parse(self.folder / "p.svg").getroot().tag.endswith("svg"))
        self.assertTrue(xml.parse(self.folder / "p.graphml").getroot().tag.endswith("graphml"))
        self.assertTrue((self.folder / "p.dot").read_text().startswith("digraph"))

    def test_stdin_and_a_pipe_between_two_commands(self):
        graph = self.succeeds("topo", "dgx-a100", "--json", "-")
        self.assertEqual(json.loads(self.succeeds("topo", "-", "--analysis", "-", stdin=graph))["counts"]["gpu"], 8)

    def test_settings_of_other_inputs_are_refused(self):
        self.fails(2, "--set NCCL_ALGO: flyover topo reads no library",
                   "topo", "dgx-h100", "--set", "nccl.NCCL_ALGO=Ring")
