{{/*
Passwords and secrets: by the name of the key that each has in a Secret of the chart, where it is set and from where
it comes.
*/}}
{{- define "conversation-export.credentials" -}}
{{- $values := .Values -}}
{{- $all := dict -}}
{{- range $user := list "migrator" "writer" "reader" "lookup" "intake" "jobs" "analyst" -}}
{{- $of := get $values.clickhouse.users $user -}}
{{- $_ := set $all (printf "clickhouse-%s-password" $user) (dict "at" (printf "clickhouse.users.%s" $user) "field" "password" "value" $of.password "existing" $of.existingSecret) -}}
{{- end -}}
{{- $_ := set $all "kafka-sasl-password" (dict "at" "kafka.sasl" "field" "password" "value" $values.kafka.sasl.password "existing" $values.kafka.sasl.existingSecret) -}}
{{- $_ := set $all "kafka-oauth-client-secret" (dict "at" "kafka.sasl.oauth" "field" "clientSecret" "value" $values.kafka.sasl.oauth.clientSecret "existing" $values.kafka.sasl.oauth.existingSecret) -}}
{{- range $component := list "ingest" "export-api" "jobs" "ops" -}}
{{- $name := include "conversation-export.valuesKey" $component -}}
{{- $of := get $values.kafka.sasl.users $name -}}
{{- $_ := set $all (printf "kafka-%s-password" $component) (dict "at" (printf "kafka.sasl.users.%s" $name) "field" "password" "value" $of.password "existing" $of.existingSecret) -}}
{{- end -}}
{{- range $component := list "export-api" "jobs" "ops" -}}
{{- $name := include "conversation-export.valuesKey" $component -}}
{{- $of := get $values.redis.users $name -}}
{{- $_ := set $all (printf "redis-%s-password" $component) (dict "at" (printf "redis.users.%s" $name) "field" "password" "value" $of.password "existing" $of.existingSecret) -}}
{{- end -}}
{{- $_ := set $all "redis-password" (dict "at" "redis" "field" "password" "value" $values.redis.password "existing" $values.redis.existingSecret) -}}
{{- $_ := set $all "redis-sentinel-password" (dict "at" "redis.sentinel" "field" "password" "value" $values.redis.sentinel.password "existing" $values.redis.sentinel.existingSecret) -}}
{{- $_ := set $all "cursor-secret" (dict "at" "cursorSecret" "field" "value" "value" $values.cursorSecret.value "existing" $values.cursorSecret.existingSecret) -}}
{{- $_ := set $all "cursor-secret-previous" (dict "at" "cursorSecretPrevious" "field" "value" "value" $values.cursorSecretPrevious.value "existing" $values.cursorSecretPrevious.existingSecret) -}}
{{- $_ := set $all "suppression-secret" (dict "at" "suppressionSecret" "field" "value" "value" $values.suppressionSecret.value "existing" $values.suppressionSecret.existingSecret) -}}
{{- $_ := set $all "traces-headers" (dict "at" "traces.headers" "field" "value" "value" $values.traces.headers.value "existing" $values.traces.headers.existingSecret) -}}
{{- $_ := set $all "board-password" (dict "at" "jobs.board" "field" "password" "value" $values.jobs.board.password "existing" $values.jobs.board.existingSecret) -}}
{{- $_ := set $all "board-password-previous" (dict "at" "jobs.board.previous" "field" "password" "value" $values.jobs.board.previous.password "existing" $values.jobs.board.previous.existingSecret) -}}
{{- $_ := set $all "s3-access-key-id" (dict "at" "jobs.s3.accessKeyId" "field" "value" "value" $values.jobs.s3.accessKeyId.value "existing" $values.jobs.s3.accessKeyId.existingSecret) -}}
{{- $_ := set $all "s3-secret-access-key" (dict "at" "jobs.s3.secretAccessKey" "field" "value" "value" $values.jobs.s3.secretAccessKey.value "existing" $values.jobs.s3.secretAccessKey.existingSecret) -}}
{{- toYaml $all -}}
{{- end -}}

{{/*
The reference to a credential: {name, key}, or nothing when it is not given. Takes root, id, hook. What a component has
no password of its own for comes from Strimzi, or from what all share.
*/}}
{{- define "conversation-export.secretRef" -}}
{{- $of := get (include "conversation-export.credentials" .root | fromYaml) .id -}}
{{- $suffix := ternary "-hooks" "" (default false .hook) -}}
{{- if $of.existing.name -}}
{{- dict "name" $of.existing.name "key" $of.existing.key | toYaml -}}
{{- else if and .root.Values.externalSecret.enabled (hasKey .root.Values.externalSecret.data .id) -}}
{{- dict "name" (printf "%s-external%s" (include "conversation-export.fullname" .root) $suffix) "key" .id | toYaml -}}
{{- else if and .root.Values.secret.create $of.value -}}
{{- dict "name" (printf "%s%s" (include "conversation-export.fullname" .root) $suffix) "key" .id | toYaml -}}
{{- else if regexMatch "^redis-(export-api|jobs|ops)-password$" .id -}}
{{- include "conversation-export.secretRef" (dict "root" .root "id" "redis-password" "hook" .hook) -}}
{{- else if and (regexMatch "^kafka-.+-password$" .id) (ne .id "kafka-sasl-password") -}}
{{- if .root.Values.strimzi.users.enabled -}}
{{- dict "name" (include "conversation-export.kafkaUser" (dict "root" .root "component" (regexReplaceAll "^kafka-(.+)-password$" .id "${1}"))) "key" "password" | toYaml -}}
{{- else -}}
{{- include "conversation-export.secretRef" (dict "root" .root "id" "kafka-sasl-password" "hook" .hook) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The credentials of a component: variable and id, both in one word. */}}
{{- define "conversation-export.credentialsOf" -}}
{{- $kafka := list (printf "KAFKA_SASL_PASSWORD=kafka-%s-password" (ternary "ops" . (eq . "topics"))) "KAFKA_OAUTH_CLIENT_SECRET=kafka-oauth-client-secret" -}}
{{- $redis := list (printf "REDIS_PASSWORD=redis-%s-password" .) "REDIS_SENTINEL_PASSWORD=redis-sentinel-password" -}}
{{- $traces := list "OTEL_EXPORTER_OTLP_HEADERS=traces-headers" -}}
{{- $common := concat $kafka $redis -}}
{{- $services := concat $common $traces -}}
{{- $users := list "CLICKHOUSE_WRITER_PASSWORD=clickhouse-writer-password" "CLICKHOUSE_READER_PASSWORD=clickhouse-reader-password" "CLICKHOUSE_LOOKUP_PASSWORD=clickhouse-lookup-password" "CLICKHOUSE_INTAKE_PASSWORD=clickhouse-intake-password" "CLICKHOUSE_JOBS_PASSWORD=clickhouse-jobs-password" "CLICKHOUSE_ANALYST_PASSWORD=clickhouse-analyst-password" -}}
{{- $of := dict
  "ingest" (concat (list "CLICKHOUSE_PASSWORD=clickhouse-writer-password") $kafka $traces (list "SUPPRESSION_SECRET=suppression-secret"))
  "export-api" (concat (list "CLICKHOUSE_PASSWORD=clickhouse-reader-password" "CLICKHOUSE_LOOKUP_PASSWORD=clickhouse-lookup-password" "CLICKHOUSE_INTAKE_PASSWORD=clickhouse-intake-password") $services (list "CURSOR_SECRET=cursor-secret" "CURSOR_SECRET_PREVIOUS=cursor-secret-previous"))
  "jobs" (concat (list "CLICKHOUSE_PASSWORD=clickhouse-jobs-password") $services (list "SUPPRESSION_SECRET=suppression-secret" "BOARD_PASSWORD=board-password" "BOARD_PASSWORD_PREVIOUS=board-password-previous" "AWS_ACCESS_KEY_ID=s3-access-key-id" "AWS_SECRET_ACCESS_KEY=s3-secret-access-key"))
  "ops" (concat (list "CLICKHOUSE_PASSWORD=clickhouse-migrator-password") $users $common (list "CURSOR_SECRET=cursor-secret" "SUPPRESSION_SECRET=suppression-secret"))
  "migrate" (list "CLICKHOUSE_PASSWORD=clickhouse-migrator-password")
  "topics" (prepend $kafka "CLICKHOUSE_PASSWORD=clickhouse-migrator-password")
-}}
{{- get $of . | join " " -}}
{{- end -}}

{{/* The user of a component at Kafka; nothing when there is none. Takes root and component. */}}
{{- define "conversation-export.kafkaUser" -}}
{{- $component := ternary "ops" .component (eq .component "topics") -}}
{{- if .root.Values.strimzi.users.enabled -}}
{{- printf "%s-%s" (include "conversation-export.fullname" .root) $component -}}
{{- else -}}
{{- $sasl := .root.Values.kafka.sasl -}}
{{- default $sasl.username (get $sasl.users (include "conversation-export.valuesKey" $component)).username -}}
{{- end -}}
{{- end -}}
