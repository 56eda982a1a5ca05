# Rows inserted while VACUUM unlinks nearly all nodes of a graph: they are found as well as others.

use strict;
use warnings FATAL => 'all';
use QuiverInjection;
use QuiverTest;
use Test::More;

my $node = injection_node('graph_insert_vacuum');
my $point = 'quiver-graph-edges-removed';
my %forms = (
	coded => { using => 'quiver_graph (v vector_l2_ops)', op => '<->' },
	plain => { using => 'hnsw (v vector_l1_ops)', op => '<+>' });

make_queries($node, table => 'queries', dims => 16);
foreach my $form (sort keys %forms)
{
	my ($using, $op) = @{ $forms{$form} }{qw(using op)};
	my $vacuum = new_session($node);

	make_rows($node, table => $form, dims => 16, first => 1, last => 4000);
	$node->safe_psql('postgres', "CREATE INDEX ${form}_idx ON $form USING $using; DELETE FROM $form WHERE id > 40;"
		  . "SELECT injection_points_attach('$point', 'wait')");
	$vacuum->{in} .= "VACUUM (INDEX_CLEANUP ON, TRUNCATE OFF) $form;\n";
	$vacuum->{handle}->pump_nb;
	wait_until_true($node, "SELECT count(*) = 1 FROM pg_stat_activity WHERE wait_event = '$point'",
		"$form: VACUUM is where nodes are unlinked");
	make_rows($node, table => $form, dims => 16, first => 4001, last => 4400, create => 0);
	$node->safe_psql('postgres',
		"SELECT injection_points_detach('$point'); SELECT injection_points_wakeup('$point')");
	end_session($vacuum);
	recall_ok(0.95, "$form: rows inserted meanwhile", node => $node, table => $form, index => "${form}_idx",
		queries => 'queries', op => $op, set => 'SET quiver.topk_scan = off;');
	check_ok($node, "${form}_idx");
}
clean_log_ok($node);
$node->stop;
done_testing();
