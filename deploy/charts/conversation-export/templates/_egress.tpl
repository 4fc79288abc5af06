{{/* The port of `host:port`, or the fallback. */}}
{{- define "conversation-export.portOf" -}}
{{- $port := regexFind ":[0-9]+$" (regexFind "^[^/]+" .address) | trimPrefix ":" -}}
{{- default .fallback $port -}}
{{- end -}}

{{/*
The peer that a `host:port` names to a NetworkPolicy: an address, or all pods of the namespace of a name in the cluster.
Nothing for other names, which a NetworkPolicy cannot hold.
*/}}
{{- define "conversation-export.peerOf" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (regexFind "^[^/]+" .) "" -}}
{{- if hasPrefix "[" $host -}}
{{- dict "ipBlock" (dict "cidr" (printf "%s/128" (trimAll "[]" $host))) | toYaml -}}
{{- else if regexMatch "^[0-9.]+$" $host -}}
{{- dict "ipBlock" (dict "cidr" (printf "%s/32" $host)) | toYaml -}}
{{- else if not (contains "." $host) -}}
{{- dict "podSelector" dict | toYaml -}}
{{- else if regexMatch "[.][^.]+[.]svc([.]|$)" $host -}}
{{- $namespace := regexReplaceAll "^.*[.]([^.]+)[.]svc([.].*)?$" $host "${1}" -}}
{{- dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace)) | toYaml -}}
{{- end -}}
{{- end -}}

{{/*
Where pods go: by the name before `To` in networkPolicy, the value with the addresses, the ports and the peers. No peers:
nothing names them.
*/}}
{{- define "conversation-export.places" -}}
{{- $values := .Values -}}
{{- $policy := $values.networkPolicy -}}
{{- $found := list (dict "name" "kafka" "at" "kafka.brokers" "fallback" "9092" "addresses" $values.kafka.brokers) -}}

{{- range $url := prepend $values.clickhouse.shardUrls $values.clickhouse.url -}}
{{- $found = append $found (dict "name" "clickhouse" "at" "clickhouse.url" "url" $url) -}}
{{- end -}}

{{- $isSentinel := regexMatch "^rediss?\\+sentinel:" $values.redis.url -}}
{{- $servers := regexFind "^[^/]+" (regexReplaceAll "^rediss?(\\+sentinel)?://([^@/]*@)?" $values.redis.url "") -}}
{{- $found = append $found (dict "name" "redis" "at" "redis.url" "fallback" (ternary "26379" "6379" $isSentinel) "addresses" (splitList "," $servers) "more" (ternary (list "6379") list $isSentinel)) -}}

{{- if $values.traces.endpoint -}}
{{- $found = append $found (dict "name" "traces" "at" "traces.endpoint" "url" $values.traces.endpoint) -}}
{{- end -}}

{{- range $values.jobs.backfillLocations -}}
{{- if hasPrefix "s3://" . -}}
{{- $found = append $found (dict "name" "s3" "at" (ternary "jobs.s3.endpoint" "jobs.backfillLocations" (ne "" $values.jobs.s3.endpoint)) "url" (default "https://s3.amazonaws.com" $values.jobs.s3.endpoint)) -}}
{{- end -}}
{{- end -}}

{{- $places := dict -}}
{{- range $one := $found -}}
{{- $addresses := $one.addresses -}}
{{- $fallback := $one.fallback -}}
{{- with $one.url -}}
{{- $addresses = list (regexReplaceAll "^https?://" . "") -}}
{{- $fallback = ternary "443" "80" (hasPrefix "https:" .) -}}
{{- end -}}
{{- $place := default (dict "at" $one.at "ports" list "peers" list "unnamed" list) (get $places $one.name) -}}
{{- range $addresses -}}
{{- $_ := set $place "ports" (append $place.ports (include "conversation-export.portOf" (dict "address" . "fallback" $fallback))) -}}
{{- $peer := include "conversation-export.peerOf" . -}}
{{- if $peer -}}
{{- $_ := set $place "peers" (append $place.peers ($peer | fromYaml)) -}}
{{- else -}}
{{- $_ := set $place "unnamed" (append $place.unnamed .) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $place "ports" (concat $place.ports (default list $one.more)) -}}
{{- $_ := set $places $one.name $place -}}
{{- end -}}

{{- range $name, $place := $places -}}
{{- $_ := set $place "ports" (default ($place.ports | uniq | sortAlpha) (get $policy (printf "%sPorts" $name))) -}}
{{- if $place.unnamed }}{{ $_ := set $place "peers" list }}{{ end -}}
{{- $_ := set $place "peers" (default ($place.peers | uniq) (get $policy (printf "%sTo" $name))) -}}
{{- end -}}
{{- toYaml $places -}}
{{- end -}}
