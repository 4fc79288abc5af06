{{/* The port of `host:port`, or the fallback. */}}
{{- define "conversation-export.portOf" -}}
{{- $port := regexFind ":[0-9]+$" (regexFind "^[^/]+" .address) | trimPrefix ":" -}}
{{- default .fallback $port -}}
{{- end -}}

{{/*
The peers that a `host:port` names to a NetworkPolicy: an address; of a name in the cluster all pods of its namespace and
private addresses, where a Service without pods leads. None for other names, which a NetworkPolicy cannot hold.
*/}}
{{- define "conversation-export.peersOf" -}}
{{- $host := regexReplaceAll ":[0-9]+$" (regexFind "^[^/]+" .) "" -}}
{{- $pods := dict -}}
{{- if hasPrefix "[" $host -}}
{{- list (dict "ipBlock" (dict "cidr" (printf "%s/128" (trimAll "[]" $host)))) | toYaml -}}
{{- else if regexMatch "^[0-9.]+$" $host -}}
{{- list (dict "ipBlock" (dict "cidr" (printf "%s/32" $host))) | toYaml -}}
{{- else if not (contains "." $host) -}}
{{- $pods = dict "podSelector" dict -}}
{{- else if regexMatch "[.][^.]+[.]svc([.]|$)" $host -}}
{{- $namespace := regexReplaceAll "^.*[.]([^.]+)[.]svc([.].*)?$" $host "${1}" -}}
{{- $pods = dict "namespaceSelector" (dict "matchLabels" (dict "kubernetes.io/metadata.name" $namespace)) -}}
{{- end -}}
{{- if $pods -}}
{{- $peers := list $pods -}}
{{- range list "10.0.0.0/8" "172.16.0.0/12" "192.168.0.0/16" "100.64.0.0/10" -}}
{{- $peers = append $peers (dict "ipBlock" (dict "cidr" .)) -}}
{{- end -}}
{{- toYaml $peers -}}
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

{{- if eq $values.kafka.sasl.mechanism "oauthbearer" -}}
{{- $found = append $found (dict "name" "login" "at" "kafka.sasl.oauth.tokenUrl" "url" $values.kafka.sasl.oauth.tokenUrl) -}}
{{- else if eq $values.kafka.sasl.mechanism "aws-msk-iam" -}}
{{- $found = append $found (dict "name" "login" "at" "kafka.sasl.awsRegion" "url" (printf "https://sts.%s.amazonaws.com" $values.kafka.sasl.awsRegion)) -}}
{{- end -}}

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
{{- $addresses = list (regexReplaceAll "^https?://([^@/]*@)?" . "") -}}
{{- $fallback = ternary "443" "80" (hasPrefix "https:" .) -}}
{{- end -}}
{{- $place := default (dict "at" $one.at "ports" list "peers" list "unnamed" list) (get $places $one.name) -}}
{{- range $addresses -}}
{{- $_ := set $place "ports" (append $place.ports (include "conversation-export.portOf" (dict "address" . "fallback" $fallback))) -}}
{{- $peers := include "conversation-export.peersOf" . -}}
{{- if $peers -}}
{{- $_ := set $place "peers" (concat $place.peers ($peers | fromYamlArray)) -}}
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
