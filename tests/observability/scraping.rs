//! The component for the Prometheus Operator finds the endpoints that the Deployments serve, and may read them; the one for
//! Grafana holds the dashboard.

use serde_json::{Value, json};

use super::{components, of_kind, read, selects, with_component};

#[test]
fn every_role_is_scraped_over_tls_with_a_token() {
    let (deployed, shipped) = (components(), with_component("prometheus", &[]));
    let monitors = of_kind(&shipped, "ServiceMonitor");
    let services = of_kind(&shipped, "Service");
    assert_eq!((monitors.len(), services.len()), (3, 3));
    for deployment in of_kind(&deployed, "Deployment") {
        let name = &deployment["metadata"]["name"];
        let template = &deployment["spec"]["template"];
        // `config/default` adds the label of the provider and renames the namespace of the manager.
        let mut labels = template["metadata"]["labels"].clone();
        let mut namespace = deployment["metadata"]["namespace"].clone();
        if namespace == "system" {
            labels["cluster.x-k8s.io/provider"] = json!("infrastructure-asg");
            namespace = json!("capasg-system");
        }
        let of_role: Vec<&&Value> =
            services.iter().filter(|service| service["metadata"]["namespace"] == namespace).collect();
        let [service] = of_role[..] else { panic!("{name}: one Service") };
        assert!(selects(&service["spec"]["selector"], &labels), "{name}");
        let port = &service["spec"]["ports"][0];
        let container = &template["spec"]["containers"][0];
        let served =
            container["ports"].as_array().unwrap().iter().find(|one| one["name"] == port["targetPort"]);
        assert_eq!(served.unwrap()["containerPort"], port["port"], "{name}");
        let of_service: Vec<&&Value> = monitors
            .iter()
            .filter(|monitor| {
                monitor["metadata"]["namespace"] == namespace
                    && selects(&monitor["spec"]["selector"]["matchLabels"], &service["metadata"]["labels"])
            })
            .collect();
        let [monitor] = of_service[..] else { panic!("{name}: one ServiceMonitor") };
        let endpoint = &monitor["spec"]["endpoints"][0];
        assert_eq!(endpoint["port"], port["name"], "{name}");
        let access = json!({
            "port": "metrics", "scheme": "https", "path": "/metrics", "interval": "30s", "honorLabels": true,
            "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
            "tlsConfig": {"insecureSkipVerify": true},
        });
        assert_eq!(*endpoint, access, "{name}");
    }
}

#[test]
fn prometheus_may_read_metrics_and_nothing_else() {
    let shipped = with_component("prometheus", &[]);
    let [role] = of_kind(&shipped, "ClusterRole")[..] else { panic!("one ClusterRole") };
    assert_eq!(role["rules"], json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]));
    let [binding] = of_kind(&shipped, "ClusterRoleBinding")[..] else { panic!("one ClusterRoleBinding") };
    assert_eq!(binding["roleRef"]["name"], role["metadata"]["name"]);
    for object in &shipped {
        assert_eq!(object["metadata"]["labels"]["release"], "prometheus", "{}", object["metadata"]["name"]);
    }
}

#[test]
fn alerts_on_a_role_name_the_job_of_its_service() {
    let shipped = with_component("prometheus", &[]);
    let services: Vec<&Value> =
        of_kind(&shipped, "Service").iter().map(|service| &service["metadata"]["name"]).collect();
    let rules = read("config/prometheus/rules.yaml");
    let jobs: Vec<&str> = rules.split("job=\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(!jobs.is_empty());
    for job in jobs {
        assert!(services.contains(&&json!(job)), "{job}");
    }
}

#[test]
fn the_dashboard_is_in_a_config_map_that_grafana_loads() {
    let shipped = with_component("grafana", &[]);
    let [object] = &shipped[..] else { panic!("one ConfigMap") };
    assert_eq!(object["metadata"]["labels"]["grafana_dashboard"], "1");
    assert_eq!(object["metadata"]["name"], "capasg-dashboard");
    assert_eq!(object["data"]["capasg.json"], read("config/grafana/capasg.json"));
    let dashboard: Value = serde_json::from_str(&read("config/grafana/capasg.json")).unwrap();
    let mut ids = std::collections::BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = &panel["gridPos"];
        let right = place["x"].as_u64().unwrap() + place["w"].as_u64().unwrap();
        assert!(right <= 24, "{} is too wide", panel["title"]);
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{} has the id of another panel", panel["title"]);
    }
}
