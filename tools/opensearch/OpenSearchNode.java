import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import org.opensearch.Version;
import org.opensearch.common.logging.LogConfigurator;
import org.opensearch.common.settings.Settings;
import org.opensearch.env.Environment;
import org.opensearch.node.InternalSettingsPreparer;
import org.opensearch.node.Node;
import org.opensearch.plugins.PluginInfo;

/** OpenSearchNode HOME PORT TRANSPORT_PORT: one node, with HTTP, scripts and vectors. */
public final class OpenSearchNode extends Node {
    private OpenSearchNode(Environment environment, Collection<PluginInfo> plugins) {
        super(environment, plugins, true);
    }

    /** A plugin whose classes are on the class path already. */
    private static PluginInfo plugin(String name, String type, String... extended) {
        return new PluginInfo(name, name, Version.CURRENT.toString(), Version.CURRENT, "21",
            type, null, List.of(extended), false);
    }

    public static void main(String[] arguments) throws Exception {
        String name = "quiver-bench";
        Settings settings = Settings.builder()
            .put("path.home", arguments[0])
            .put("http.port", arguments[1])
            .put("transport.port", arguments[2])
            .put("network.host", "127.0.0.1")
            .put("cluster.name", name)
            .put("node.name", name)
            .put("discovery.type", "single-node")
            .put("http.type", "netty4")
            .put("transport.type", "netty4")
            // Else it takes no index where the disk is nearly full.
            .put("cluster.routing.allocation.disk.threshold_enabled", false)
            .build();
        Path configuration = Path.of(arguments[0], "config");
        Environment environment = InternalSettingsPreparer.prepareEnvironment(
            settings, Map.of(), configuration, () -> name);
        LogConfigurator.setNodeName(name);
        Node node = new OpenSearchNode(environment, List.of(
            plugin("transport-netty4", "org.opensearch.transport.Netty4ModulePlugin"),
            plugin("lang-painless", "org.opensearch.painless.PainlessModulePlugin"),
            plugin("opensearch-knn", "org.opensearch.knn.plugin.KNNPlugin", "lang-painless")));
        node.start();
        Thread.currentThread().join();
    }
}
