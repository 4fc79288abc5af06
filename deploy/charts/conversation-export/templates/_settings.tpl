{{/* Which components know the variables of `config`. */}}
{{- define "conversation-export.sharedConfig" -}}
LANDING: [ingest, ops]
LANDING_DAYS: [ingest, jobs, ops]
MAX_TIME_AHEAD_SECONDS: [ingest, jobs]
UPLOAD_WINDOW_SECONDS: [jobs, ops]
ERASURE_DEADLINE_HOURS: [export-api, jobs, ops]
LOG_LEVEL: [ingest, export-api, jobs]
{{- end -}}

{{/* The variables of a component that are no secrets, as a map. Takes root and component. */}}
{{- define "conversation-export.settings" -}}
{{- $values := .root.Values -}}
{{- $component := .component -}}
{{- $of := get $values (include "conversation-export.valuesKey" $component) -}}
{{- $env := dict -}}
{{- $isService := has $component (list "ingest" "export-api" "jobs") -}}
{{- $users := dict "ingest" "writer" "export-api" "reader" "jobs" "jobs" "ops" "migrator" "migrate" "migrator" "topics" "migrator" -}}

{{- if ne $component "migrate" -}}
{{- $_ := set $env "KAFKA_BROKERS" (join "," $values.kafka.brokers) -}}
{{- if $values.kafka.tls.enabled -}}
{{- $_ := set $env "KAFKA_TLS" "on" -}}
{{- if or $values.kafka.tls.ca.existingSecret $values.kafka.tls.ca.existingConfigMap -}}
{{- $_ := set $env "KAFKA_CA_FILE" "/etc/conversation-export/kafka-ca/ca.crt" -}}
{{- end -}}
{{- if $values.kafka.tls.clientCertificate.existingSecret -}}
{{- $_ := set $env "KAFKA_CERT_FILE" "/etc/conversation-export/kafka-client/tls.crt" -}}
{{- $_ := set $env "KAFKA_KEY_FILE" "/etc/conversation-export/kafka-client/tls.key" -}}
{{- end -}}
{{- end -}}
{{- if $values.kafka.sasl.mechanism -}}
{{- $_ := set $env "KAFKA_SASL_MECHANISM" $values.kafka.sasl.mechanism -}}
{{- $oauth := $values.kafka.sasl.oauth -}}
{{- if eq $values.kafka.sasl.mechanism "oauthbearer" -}}
{{- $_ := set $env "KAFKA_OAUTH_TOKEN_URL" $oauth.tokenUrl -}}
{{- $_ := set $env "KAFKA_OAUTH_PLAIN_HTTP" (ternary "on" "" $oauth.plainHttp) -}}
{{- $_ := set $env "KAFKA_OAUTH_CLIENT_ID" $oauth.clientId -}}
{{- $_ := set $env "KAFKA_OAUTH_CLIENT_AUTH" $oauth.clientAuth -}}
{{- $_ := set $env "KAFKA_OAUTH_SCOPE" $oauth.scope -}}
{{- $_ := set $env "KAFKA_OAUTH_PARAMETERS" (include "conversation-export.query" $oauth.parameters) -}}
{{- $_ := set $env "KAFKA_OAUTH_EXTENSIONS" (include "conversation-export.query" $oauth.extensions) -}}
{{- else if eq $values.kafka.sasl.mechanism "aws-msk-iam" -}}
{{- $_ := set $env "KAFKA_AWS_REGION" $values.kafka.sasl.awsRegion -}}
{{- else -}}
{{- $_ := set $env "KAFKA_SASL_USERNAME" (include "conversation-export.kafkaUser" $) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if has $component (list "ingest" "jobs" "ops") -}}
{{- $_ := set $env "KAFKA_GROUP_ID" $values.kafka.consumerGroup -}}
{{- end -}}
{{- if has $component (list "ingest" "jobs" "ops" "topics") -}}
{{- range $name, $topic := fromYaml (include "conversation-export.eventTopics" .root) -}}
{{- $_ := set $env (printf "TOPIC_%s" (upper (snakecase $name))) $topic -}}
{{- end -}}
{{- end -}}
{{- if has $component (list "export-api" "ops" "topics") -}}
{{- $_ := set $env "TOPIC_SMS_TRIGGERS" $values.kafka.topics.smsTriggers -}}
{{- end -}}

{{- $_ := set $env "CLICKHOUSE_URL" $values.clickhouse.url -}}
{{- $_ := set $env "CLICKHOUSE_USER" (get $values.clickhouse.users (get $users $component)).username -}}
{{- if or $values.clickhouse.ca.existingSecret $values.clickhouse.ca.existingConfigMap -}}
{{- $_ := set $env "CLICKHOUSE_CA_FILE" "/etc/conversation-export/clickhouse-ca/ca.crt" -}}
{{- end -}}
{{- if eq $component "export-api" -}}
{{- $_ := set $env "CLICKHOUSE_LOOKUP_USER" $values.clickhouse.users.lookup.username -}}
{{- $_ := set $env "CLICKHOUSE_INTAKE_USER" $values.clickhouse.users.intake.username -}}
{{- end -}}
{{- if eq $component "ops" -}}
{{- /* doctor checks the grants of these users. */ -}}
{{- range list "writer" "reader" "lookup" "intake" "jobs" -}}
{{- $_ := set $env (printf "CLICKHOUSE_%s_USER" (upper .)) (get $values.clickhouse.users .).username -}}
{{- end -}}
{{- with $values.clickhouse.users.analyst.username -}}
{{- $_ := set $env "CLICKHOUSE_ANALYST_USER" . -}}
{{- end -}}
{{- end -}}
{{- if and $values.clickhouse.cluster (has $component (list "jobs" "ops" "migrate" "topics")) -}}
{{- $_ := set $env "CLUSTER" $values.clickhouse.cluster -}}
{{- with $values.clickhouse.shardUrls -}}
{{- $_ := set $env "CLICKHOUSE_SHARD_URLS" (join "," .) -}}
{{- end -}}
{{- end -}}

{{- if has $component (list "export-api" "jobs" "ops") -}}
{{- $_ := set $env "REDIS_URL" $values.redis.url -}}
{{- with default $values.redis.username (get $values.redis.users (include "conversation-export.valuesKey" $component)).username -}}
{{- $_ := set $env "REDIS_USERNAME" . -}}
{{- end -}}
{{- if or $values.redis.ca.existingSecret $values.redis.ca.existingConfigMap -}}
{{- $_ := set $env "REDIS_CA_FILE" "/etc/conversation-export/redis-ca/ca.crt" -}}
{{- end -}}
{{- end -}}

{{- if or $isService (eq $component "ops") -}}
{{- range $name, $components := include "conversation-export.sharedConfig" $.root | fromYaml -}}
{{- if and (hasKey $values.config $name) (has $component $components) -}}
{{- $_ := set $env $name (get $values.config $name) -}}
{{- end -}}
{{- end -}}
{{- range $name, $value := $of.config -}}
{{- $_ := set $env $name $value -}}
{{- end -}}
{{- end -}}

{{- if $isService -}}
{{- if $values.traces.endpoint -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_ENDPOINT" $values.traces.endpoint -}}
{{- $_ := set $env "OTEL_TRACES_SAMPLER_ARG" $values.traces.sampleRatio -}}
{{- if or $values.traces.ca.existingSecret $values.traces.ca.existingConfigMap -}}
{{- $_ := set $env "OTEL_EXPORTER_OTLP_CERTIFICATE" "/etc/conversation-export/traces-ca/ca.crt" -}}
{{- end -}}
{{- end -}}
{{- $_ := set $env "METRICS_PORT" 9090 -}}
{{- $_ := set $env "SHUTDOWN_DEADLINE_MS" (mul $of.shutdownSeconds 1000) -}}
{{- end -}}
{{- if has $component (list "migrate" "topics") -}}
{{- /* Whom the audit names for what Helm does. */ -}}
{{- $_ := set $env "OPERATOR" (printf "helm, release %s revision %d" $.root.Release.Name $.root.Release.Revision) -}}
{{- end -}}
{{- if eq $component "export-api" -}}
{{- $_ := set $env "PORT" 8080 -}}
{{- with $values.exportApi.trustedProxies -}}
{{- $_ := set $env "TRUSTED_PROXIES" (join "," .) -}}
{{- end -}}
{{- end -}}
{{- if eq $component "jobs" -}}
{{- if include "conversation-export.hasBoard" $.root -}}
{{- $_ := set $env "BOARD_PORT" 9091 -}}
{{- $_ := set $env "BOARD_USER" $values.jobs.board.username -}}
{{- end -}}
{{- with $values.jobs.backfillLocations -}}
{{- $_ := set $env "BACKFILL_LOCATIONS" (join "," .) -}}
{{- end -}}
{{- with $values.jobs.s3.endpoint -}}
{{- $_ := set $env "AWS_ENDPOINT_URL_S3" . -}}
{{- end -}}
{{- with $values.jobs.s3.region -}}
{{- $_ := set $env "AWS_REGION" . -}}
{{- end -}}
{{- end -}}

{{- /* YAML would write large numbers with an exponent. */ -}}
{{- range $name, $value := $env -}}
{{- if kindIs "float64" $value -}}
{{- $_ := set $env $name (ternary ($value | int64 | toString) ($value | toString) (eq (float64 (int64 $value)) $value)) -}}
{{- else -}}
{{- $_ := set $env $name (toString $value) -}}
{{- end -}}
{{- end -}}
{{- /* Empty variables count as absent, so they are left out. */ -}}
{{- $given := dict -}}
{{- range $name, $value := $env -}}
{{- if ne $value "" }}{{ $_ := set $given $name $value }}{{ end -}}
{{- end -}}
{{- toYaml $given -}}
{{- end -}}

{{/* Volumes with certificates: name, source and files. */}}
{{- define "conversation-export.certificates" -}}
{{- $values := .root.Values -}}
{{- $all := list -}}
{{- if ne .component "migrate" -}}
{{- $all = append $all (dict "name" "kafka-ca" "ca" $values.kafka.tls.ca "wanted" $values.kafka.tls.enabled) -}}
{{- end -}}
{{- $all = append $all (dict "name" "clickhouse-ca" "ca" $values.clickhouse.ca "wanted" true) -}}
{{- if has .component (list "export-api" "jobs" "ops") -}}
{{- $all = append $all (dict "name" "redis-ca" "ca" $values.redis.ca "wanted" true) -}}
{{- end -}}
{{- if has .component (list "ingest" "export-api" "jobs") -}}
{{- $all = append $all (dict "name" "traces-ca" "ca" $values.traces.ca "wanted" (ne $values.traces.endpoint "")) -}}
{{- end -}}
{{- $volumes := list -}}
{{- range $all -}}
{{- $items := list (dict "key" .ca.key "path" "ca.crt") -}}
{{- if not .wanted -}}
{{- else if .ca.existingSecret -}}
{{- $volumes = append $volumes (dict "name" .name "secret" (dict "secretName" .ca.existingSecret "items" $items)) -}}
{{- else if .ca.existingConfigMap -}}
{{- $volumes = append $volumes (dict "name" .name "configMap" (dict "name" .ca.existingConfigMap "items" $items)) -}}
{{- end -}}
{{- end -}}
{{- $client := $values.kafka.tls.clientCertificate -}}
{{- if and (ne .component "migrate") $values.kafka.tls.enabled $client.existingSecret -}}
{{- $items := list (dict "key" $client.certKey "path" "tls.crt") (dict "key" $client.keyKey "path" "tls.key") -}}
{{- $volumes = append $volumes (dict "name" "kafka-client" "secret" (dict "secretName" $client.existingSecret "items" $items)) -}}
{{- end -}}
{{- with $volumes }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* A dictionary of texts as name=value&name=value, percent-encoded. */}}
{{- define "conversation-export.query" -}}
{{- $pairs := list -}}
{{- range $name, $value := . -}}
{{- $pairs = append $pairs (printf "%s=%s" (urlquery $name) (urlquery $value)) -}}
{{- end -}}
{{- $pairs | join "&" -}}
{{- end -}}
