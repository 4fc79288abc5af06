{{/* Every mistake of the values that can be seen here, all at once, each with what to do. */}}
{{- define "conversation-export.validate" -}}
{{- $values := .Values -}}
{{- $kafka := $values.kafka -}}
{{- $problems := list -}}

{{- if not $kafka.brokers -}}
{{- $problems = append $problems "kafka.brokers is empty: list the brokers as host:port, for instance [kafka-bootstrap:9092]" -}}
{{- end -}}
{{- if not $values.clickhouse.url -}}
{{- $problems = append $problems "clickhouse.url is empty: set it to http://host:8123/database or https://host:8443/database" -}}
{{- else if regexMatch "//[^/]*@" $values.clickhouse.url -}}
{{- $problems = append $problems "clickhouse.url holds a user: leave only the host in it, users and their Secrets go to clickhouse.users" -}}
{{- end -}}
{{- if not $values.redis.url -}}
{{- $problems = append $problems "redis.url is empty: set it to redis://host:6379, rediss://… for TLS, or redis+sentinel://host:26379,host:26379/name" -}}
{{- else if regexMatch "//[^/]*@" $values.redis.url -}}
{{- $problems = append $problems "redis.url holds a user or a password: leave only hosts in it and name the Secret in redis.existingSecret.name" -}}
{{- end -}}

{{- /* Credentials */ -}}
{{- $required := list "clickhouse-writer-password" "clickhouse-reader-password" "clickhouse-lookup-password" "clickhouse-intake-password" "clickhouse-jobs-password" "cursor-secret" "suppression-secret" -}}
{{- if or $values.migrations.enabled $values.ops.enabled $kafka.createTopics.enabled -}}
{{- $required = append $required "clickhouse-migrator-password" -}}
{{- end -}}
{{- $mechanism := $kafka.sasl.mechanism -}}
{{- $byPassword := regexMatch "^(plain|scram-.*)$" $mechanism -}}
{{- if eq $mechanism "oauthbearer" }}{{ $required = append $required "kafka-oauth-client-secret" }}{{ end -}}
{{- if $byPassword -}}
{{- $required = append $required "kafka-sasl-password" -}}
{{- if or $values.strimzi.users.enabled (not $kafka.sasl.username) }}{{ $required = without $required "kafka-sasl-password" }}{{ end -}}
{{- range $component := list "ingest" "export-api" "jobs" "ops" -}}
{{- $own := (get $kafka.sasl.users (include "conversation-export.valuesKey" $component)).username -}}
{{- if and $own (not $values.strimzi.users.enabled) }}{{ $required = append $required (printf "kafka-%s-password" $component) }}{{ end -}}
{{- end -}}
{{- end -}}
{{- $analyst := $values.clickhouse.users.analyst -}}
{{- if $analyst.username }}{{ $required = append $required "clickhouse-analyst-password" }}{{ end -}}
{{- if and (not $analyst.username) (include "conversation-export.secretRef" (dict "root" $ "id" "clickhouse-analyst-password")) -}}
{{- $problems = append $problems "clickhouse.users.analyst has a password, but no username: set it, or leave the password out" -}}
{{- end -}}
{{- if $values.redis.username -}}
{{- $required = append $required "redis-password" -}}
{{- end -}}
{{- range $component := list "export-api" "jobs" "ops" -}}
{{- $name := include "conversation-export.valuesKey" $component -}}
{{- $own := get $values.redis.users $name -}}
{{- if $own.username }}{{ $required = append $required (printf "redis-%s-password" $component) }}{{ end -}}
{{- if and (not $own.username) (or $own.password $own.existingSecret.name) -}}
{{- $problems = append $problems (printf "redis.users.%s has a password, but no username: set it, or leave the password out" $name) -}}
{{- end -}}
{{- if not (or $values.redis.allowNoPassword $own.username (include "conversation-export.secretRef" (dict "root" $ "id" "redis-password"))) -}}
{{- $problems = append $problems (printf "redis has no password for %s, so that everybody who reaches it can start jobs: set redis.existingSecret.name, or redis.users.%s; redis.allowNoPassword=true takes it as it is" $component $name) -}}
{{- end -}}
{{- end -}}
{{- $credentials := include "conversation-export.credentials" . | fromYaml -}}
{{- range $id, $of := $credentials -}}
{{- if and $of.value $of.existing.name -}}
{{- $problems = append $problems (printf "%s.%s and %s.existingSecret.name are both set: leave one of them out" $of.at $of.field $of.at) -}}
{{- else if and $of.value (not $values.secret.create) -}}
{{- $problems = append $problems (printf "%s.%s is set in the values: put it into a Secret and name that in %s.existingSecret.name; only for trying out set secret.create=true" $of.at $of.field $of.at) -}}
{{- else if and (has $id $required) (not (include "conversation-export.secretRef" (dict "root" $ "id" $id))) -}}
{{- $problems = append $problems (printf "%s has no Secret: set %s.existingSecret.name, or externalSecret.data.%s with externalSecret.enabled=true" $of.at $of.at $id) -}}
{{- end -}}
{{- end -}}
{{- range $id, $_ := $values.externalSecret.data -}}
{{- if not (hasKey $credentials $id) -}}
{{- $problems = append $problems (printf "externalSecret.data.%s is no credential: the names are %s" $id (keys $credentials | sortAlpha | join ", ")) -}}
{{- end -}}
{{- end -}}
{{- if and $values.externalSecret.enabled (not $values.externalSecret.secretStoreRef.name) -}}
{{- $problems = append $problems "externalSecret.secretStoreRef.name is empty: name the SecretStore or ClusterSecretStore to read from" -}}
{{- end -}}
{{- range $of := list (dict "value" $values.cursorSecret.value "at" "cursorSecret.value") (dict "value" $values.suppressionSecret.value "at" "suppressionSecret.value") -}}
{{- if and $of.value (lt (len $of.value) 32) -}}
{{- $problems = append $problems (printf "%s is too short: give it at least 32 characters, such as those of openssl rand -hex 32" $of.at) -}}
{{- end -}}
{{- end -}}
{{- $kafkaUsers := list -}}
{{- range $component := list "ingest" "export-api" "jobs" "ops" -}}
{{- $name := include "conversation-export.valuesKey" $component -}}
{{- $own := get $kafka.sasl.users $name -}}
{{- $kafkaUsers = append $kafkaUsers $own.username -}}
{{- if and $byPassword (not (include "conversation-export.kafkaUser" (dict "root" $ "component" $component))) -}}
{{- $problems = append $problems (printf "kafka.sasl.username is empty, and so is kafka.sasl.users.%s.username: name a user, it is required with kafka.sasl.mechanism" $name) -}}
{{- end -}}
{{- if and (not $own.username) (or $own.password $own.existingSecret.name) -}}
{{- $problems = append $problems (printf "kafka.sasl.users.%s has a password, but no username: set it, or leave the password out" $name) -}}
{{- end -}}
{{- end -}}
{{- if and $values.strimzi.users.enabled (or $kafka.sasl.username $kafka.sasl.existingSecret.name (compact $kafkaUsers)) -}}
{{- $problems = append $problems "strimzi.users.enabled makes the users and their Secrets: leave users and Secrets out of kafka.sasl" -}}
{{- end -}}
{{- if and (not $kafka.sasl.mechanism) (or $kafka.sasl.username $kafka.sasl.existingSecret.name (compact $kafkaUsers)) -}}
{{- $problems = append $problems "kafka.sasl.mechanism is empty: set it to plain, scram-sha-256 or scram-sha-512, or leave user and Secret out" -}}
{{- end -}}
{{- $oauth := $kafka.sasl.oauth -}}
{{- if and $mechanism (not $byPassword) (or $kafka.sasl.username $kafka.sasl.password $kafka.sasl.existingSecret.name (compact $kafkaUsers)) -}}
{{- $problems = append $problems (printf "kafka.sasl.mechanism is %s, which has no users and passwords: leave them out of kafka.sasl" $mechanism) -}}
{{- end -}}
{{- if eq $mechanism "oauthbearer" -}}
{{- if not (and $oauth.tokenUrl $oauth.clientId) -}}
{{- $problems = append $problems "kafka.sasl.oauth.tokenUrl or clientId is empty: oauthbearer requires both" -}}
{{- end -}}
{{- if and (hasPrefix "http:" $oauth.tokenUrl) (not $oauth.plainHttp) -}}
{{- $problems = append $problems "kafka.sasl.oauth.tokenUrl begins with http: use https, or kafka.sasl.oauth.plainHttp=true sends the secret as it is" -}}
{{- end -}}
{{- else if or $oauth.tokenUrl $oauth.clientId $oauth.clientSecret $oauth.existingSecret.name -}}
{{- $problems = append $problems "kafka.sasl.oauth counts only with kafka.sasl.mechanism=oauthbearer: set that, or leave it out" -}}
{{- end -}}
{{- if eq $mechanism "aws-msk-iam" -}}
{{- if not $kafka.sasl.awsRegion -}}
{{- $problems = append $problems "kafka.sasl.awsRegion is empty: aws-msk-iam requires the region of the cluster" -}}
{{- end -}}
{{- if include "conversation-export.secretRef" (dict "root" $ "id" "s3-access-key-id") -}}
{{- $problems = append $problems "jobs.s3.accessKeyId would also sign the tokens of aws-msk-iam: leave the keys of S3 out, and give the role of the pods the rights at S3" -}}
{{- end -}}
{{- if not $kafka.tls.enabled -}}
{{- $problems = append $problems "kafka.tls.enabled is false: aws-msk-iam requires TLS" -}}
{{- end -}}
{{- else if $kafka.sasl.awsRegion -}}
{{- $problems = append $problems "kafka.sasl.awsRegion counts only with kafka.sasl.mechanism=aws-msk-iam: set that, or leave it out" -}}
{{- end -}}
{{- if and $values.ingest.keda.enabled $mechanism (not $byPassword) -}}
{{- $problems = append $problems (printf "ingest.keda is not made for kafka.sasl.mechanism=%s: set ingest.keda.enabled=false and scale ingest by ingest.replicas" $mechanism) -}}
{{- end -}}
{{- if $values.jobs.board.existingSecret.name -}}
{{- if not $values.jobs.board.username -}}
{{- $problems = append $problems "jobs.board.username is empty: it is required with jobs.board.existingSecret.name" -}}
{{- end -}}
{{- end -}}

{{- /* Certificates */ -}}
{{- if and (not $kafka.tls.enabled) (or $kafka.tls.ca.existingSecret $kafka.tls.ca.existingConfigMap $kafka.tls.clientCertificate.existingSecret) -}}
{{- $problems = append $problems "kafka.tls has certificates, but kafka.tls.enabled is false: set it to true, or leave them out" -}}
{{- end -}}
{{- if and (or $values.clickhouse.ca.existingSecret $values.clickhouse.ca.existingConfigMap) (not (hasPrefix "https:" $values.clickhouse.url)) -}}
{{- $problems = append $problems "clickhouse.ca counts only with an https: address in clickhouse.url: change the address, or leave clickhouse.ca out" -}}
{{- end -}}
{{- if and (or $values.redis.ca.existingSecret $values.redis.ca.existingConfigMap) (not (hasPrefix "rediss" $values.redis.url)) -}}
{{- $problems = append $problems "redis.ca counts only with a rediss: address in redis.url: change the address, or leave redis.ca out" -}}
{{- end -}}
{{- if and (or $values.redis.sentinel.password $values.redis.sentinel.existingSecret.name) (not (regexMatch "^rediss?\\+sentinel:" $values.redis.url)) -}}
{{- $problems = append $problems "redis.sentinel counts only with redis+sentinel: in redis.url: change the address, or leave redis.sentinel out" -}}
{{- end -}}
{{- range $at, $ca := dict "kafka.tls.ca" $kafka.tls.ca "clickhouse.ca" $values.clickhouse.ca "redis.ca" $values.redis.ca "traces.ca" $values.traces.ca -}}
{{- if and $ca.existingSecret $ca.existingConfigMap -}}
{{- $problems = append $problems (printf "%s names a Secret and a ConfigMap: leave one of them out" $at) -}}
{{- end -}}
{{- end -}}

{{- if and (or $values.traces.ca.existingSecret $values.traces.ca.existingConfigMap) (not (hasPrefix "https:" $values.traces.endpoint)) -}}
{{- $problems = append $problems "traces.ca counts only with an https: address in traces.endpoint: change the address, or leave traces.ca out" -}}
{{- end -}}
{{- if and (or $values.traces.headers.value $values.traces.headers.existingSecret.name) (not $values.traces.endpoint) -}}
{{- $problems = append $problems "traces.headers counts only with traces.endpoint: set the address of the receiver, or leave traces.headers out" -}}
{{- end -}}

{{- if and $values.clickhouse.shardUrls (not $values.clickhouse.cluster) -}}
{{- $problems = append $problems "clickhouse.shardUrls counts only with clickhouse.cluster: set the name of the cluster in remote_servers, or leave shardUrls out" -}}
{{- end -}}

{{- /* Network */ -}}
{{- range $name := list "ingest" "exportApi" "jobs" -}}
{{- range (get $values $name).extraEnv -}}
{{- if has .name (list "PORT" "METRICS_PORT" "BOARD_PORT") -}}
{{- $problems = append $problems (printf "%s.extraEnv sets %s: leave it out, the ports of the pods are 8080, 9090 (METRICS_PORT) and 9091 (BOARD_PORT)" $name .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $policy := $values.networkPolicy -}}
{{- $readers := list -}}
{{- range list "serviceMonitor" "prometheusRule" "dashboards" -}}
{{- if (get $values .).enabled }}{{ $readers = append $readers (printf "%s.enabled" .) }}{{ end -}}
{{- end -}}
{{- if and $policy.enabled $readers (not $policy.metricsFrom) -}}
{{- $problems = append $problems (printf "networkPolicy.metricsFrom is empty, so that Prometheus reads no metrics, which %s rests on: name its pods, for instance [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]" (first $readers)) -}}
{{- end -}}
{{- if and $policy.boardFrom (not (include "conversation-export.hasBoard" .)) -}}
{{- $problems = append $problems "networkPolicy.boardFrom counts only with a board: set jobs.board.existingSecret.name, or leave boardFrom out" -}}
{{- end -}}
{{- if $policy.enabled -}}
{{- range $name, $place := include "conversation-export.places" . | fromYaml -}}
{{- if and (not $place.peers) (compact $place.unnamed) -}}
{{- $problems = append $problems (printf "networkPolicy.%sTo is empty, and %s names %s, which a NetworkPolicy cannot hold: list its addresses, for instance [{ipBlock: {cidr: 10.0.8.0/24}}], or name it as service.namespace.svc; [{ipBlock: {cidr: 0.0.0.0/0}}] lets pods go anywhere on its ports" $name $place.at (join ", " $place.unnamed)) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- /* Scaling */ -}}
{{- range $of := list (dict "at" "ingest" "scaler" "keda") (dict "at" "exportApi" "scaler" "autoscaling") (dict "at" "jobs" "scaler" "keda") -}}
{{- $component := get $values $of.at -}}
{{- $scaler := get $component $of.scaler -}}
{{- if and $scaler.enabled (not (kindIs "invalid" $component.replicas)) -}}
{{- $problems = append $problems (printf "%s.replicas and %s.%s.enabled are both set: leave replicas null, %s.%s.minReplicas is the lower bound" $of.at $of.at $of.scaler $of.at $of.scaler) -}}
{{- end -}}
{{- if and $scaler.enabled (gt (int $scaler.minReplicas) (int $scaler.maxReplicas)) -}}
{{- $problems = append $problems (printf "%s.%s.minReplicas is larger than maxReplicas: lower it" $of.at $of.scaler) -}}
{{- end -}}
{{- end -}}
{{- $members := include "conversation-export.maxReplicas" (dict "root" . "component" "ingest") | int -}}
{{- if gt $members (int $kafka.partitions) -}}
{{- $problems = append $problems (printf "ingest may have %d replicas, but each topic has %d partitions, so some would have no work: lower %s, or add partitions and raise kafka.partitions" $members (int $kafka.partitions) (ternary "ingest.keda.maxReplicas" "ingest.replicas" $values.ingest.keda.enabled)) -}}
{{- end -}}
{{- if and $values.jobs.keda.enabled (not $values.jobs.keda.prometheusAddress) -}}
{{- $problems = append $problems "jobs.keda.prometheusAddress is empty: set it to the address of the Prometheus that scrapes jobs, such as http://prometheus.monitoring:9090" -}}
{{- end -}}
{{- if and $values.jobs.keda.enabled (not $values.serviceMonitor.enabled) (not $values.jobs.keda.query) -}}
{{- $problems = append $problems "jobs.keda rests on the metrics of jobs: set serviceMonitor.enabled=true, or jobs.keda.query to a query of your own" -}}
{{- end -}}
{{- $idle := int (default 60000 (get $values.exportApi.config "IDLE_TIMEOUT_MS")) -}}
{{- if le (mul $values.exportApi.shutdownSeconds 800) $idle -}}
{{- $problems = append $problems (printf "exportApi.shutdownSeconds is too short to finish pages: four fifths of it must be longer than IDLE_TIMEOUT_MS (%d), so set it to %d or more" $idle (add1 (div $idle 800))) -}}
{{- end -}}

{{- /* Ingress and gateway */ -}}
{{- if and (or $values.ingress.enabled $values.httpRoute.enabled) (not $values.exportApi.trustedProxies) -}}
{{- $problems = append $problems "exportApi.trustedProxies is empty behind an ingress or a gateway: name the addresses of its proxies, such as [10.0.3.0/24]; they decide whether links begin with https and whose failed keys are counted together" -}}
{{- end -}}
{{- if and (or $values.ingress.enabled $values.httpRoute.enabled) (not (get $values.exportApi.config "PUBLIC_BASE_URL")) -}}
{{- $problems = append $problems "exportApi.config.PUBLIC_BASE_URL is empty behind an ingress or a gateway: set it to the public address, such as https://export.example.com/api; links begin with it" -}}
{{- end -}}
{{- if and $values.ingress.enabled (not $values.ingress.hosts) -}}
{{- $problems = append $problems "ingress.hosts is empty: name the host of the export API" -}}
{{- end -}}
{{- if and $values.httpRoute.enabled (not $values.httpRoute.parentRefs) -}}
{{- $problems = append $problems "httpRoute.parentRefs is empty: name the Gateway, such as [{name: public, namespace: gateways}]" -}}
{{- end -}}

{{- /* The image, topics */ -}}
{{- if eq $values.image.tag "latest" -}}
{{- $problems = append $problems "image.tag is latest, which may be another image at any time: name a version, or a digest in image.digest" -}}
{{- end -}}
{{- $topics := values $kafka.topics -}}
{{- if lt (len (uniq $topics)) (len $topics) -}}
{{- $problems = append $problems "kafka.topics names a topic twice: give each list a topic of its own" -}}
{{- end -}}

{{- /* Strimzi */ -}}
{{- if and (or $values.strimzi.topics.enabled $values.strimzi.users.enabled) (not $values.strimzi.cluster) -}}
{{- $problems = append $problems "strimzi.cluster is empty: name the Kafka resource whose operators make topics and users" -}}
{{- end -}}
{{- if and $values.strimzi.users.enabled (ne $kafka.sasl.mechanism "scram-sha-512") -}}
{{- $problems = append $problems "strimzi.users are made for scram-sha-512: set kafka.sasl.mechanism to it" -}}
{{- end -}}
{{- if and $values.strimzi.topics.enabled $kafka.createTopics.enabled -}}
{{- $problems = append $problems "strimzi.topics.enabled and kafka.createTopics.enabled both make the topics: leave one of them out" -}}
{{- end -}}
{{- if and $values.strimzi.users.enabled $kafka.createTopics.enabled -}}
{{- $problems = append $problems "kafka.createTopics.enabled runs before strimzi.users.enabled has made a user: set strimzi.topics.enabled in its place" -}}
{{- end -}}
{{- if and $values.prometheusRule.enabled (not $values.prometheusRule.runbookBaseUrl) -}}
{{- $problems = append $problems "prometheusRule.runbookBaseUrl is empty: set it to where docs/runbooks can be read" -}}
{{- end -}}

{{- /* APIs that the cluster must have */ -}}
{{- range $of := list
  (dict "wanted" $values.externalSecret.enabled "at" "externalSecret.enabled" "api" "external-secrets.io/v1" "what" "the External Secrets Operator")
  (dict "wanted" (or $values.ingest.keda.enabled $values.jobs.keda.enabled) "at" "keda.enabled" "api" "keda.sh/v1alpha1" "what" "KEDA")
  (dict "wanted" $values.serviceMonitor.enabled "at" "serviceMonitor.enabled" "api" "monitoring.coreos.com/v1" "what" "the Prometheus Operator")
  (dict "wanted" $values.prometheusRule.enabled "at" "prometheusRule.enabled" "api" "monitoring.coreos.com/v1" "what" "the Prometheus Operator")
  (dict "wanted" (or $values.strimzi.topics.enabled $values.strimzi.users.enabled) "at" "strimzi" "api" "kafka.strimzi.io/v1" "what" "Strimzi")
  (dict "wanted" $values.httpRoute.enabled "at" "httpRoute.enabled" "api" "gateway.networking.k8s.io/v1" "what" "the Gateway API")
-}}
{{- if and $of.wanted (not ($.Capabilities.APIVersions.Has $of.api)) -}}
{{- $problems = append $problems (printf "%s needs %s, and this cluster does not know %s: install it first, or leave the setting out; for helm template add --api-versions %s" $of.at $of.what $of.api $of.api) -}}
{{- end -}}
{{- end -}}

{{- if $problems -}}
{{- fail (printf "the values need a change:\n  - %s" (uniq $problems | join "\n  - ")) -}}
{{- end -}}
{{- end -}}
