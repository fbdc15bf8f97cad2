"""What is asked of Dagster's GraphQL, by name."""

METADATA = """
fragment metadata on MetadataEntry {
  __typename
  label
  ... on IntMetadataEntry { intRepr }
  ... on FloatMetadataEntry { floatValue }
  ... on TextMetadataEntry { text }
  ... on BoolMetadataEntry { boolValue }
  ... on TimestampMetadataEntry { timestamp }
  ... on JsonMetadataEntry { jsonString }
  ... on UrlMetadataEntry { url }
  ... on MarkdownMetadataEntry { mdStr }
  ... on PathMetadataEntry { path }
  ... on TableMetadataEntry { table { records } }
}
"""

LOCATIONS = """
{ workspaceOrError { ... on Workspace { locationEntries {
    name
    loadStatus
    locationOrLoadError {
      ... on RepositoryLocation { repositories { name } }
      ... on PythonError { message causes { message } }
    }
} } } }
"""

RELOAD = """
mutation ($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) {
  __typename
  ... on PythonError { message }
} }
"""

LAUNCH = """
mutation ($params: ExecutionParams!) { launchRun(executionParams: $params) {
  __typename
  ... on LaunchRunSuccess { run { runId } }
  ... on RunConfigValidationInvalid { errors { message } }
  ... on PythonError { message }
} }
"""

RUN = "query ($id: ID!) { runOrError(runId: $id) { ... on Run { status } } }"

RUNS = """
query ($filter: RunsFilter, $limit: Int) { runsOrError(filter: $filter, limit: $limit) {
  ... on Runs { results {
    runId jobName status creationTime startTime endTime tags { key value }
  } }
} }
"""

RUN_LOG = """
query ($id: ID!) { logsForRun(runId: $id) { ... on EventConnection { events {
  __typename
  ... on MessageEvent { message level stepKey eventType timestamp }
  ... on ExecutionStepFailureEvent { error { message causes { message } } }
} } } }
"""

TERMINATE = """
mutation ($id: String!) { terminateRun(runId: $id) {
  __typename
  ... on TerminateRunFailure { message }
  ... on PythonError { message }
} }
"""

SENSOR = """
query ($selector: SensorSelector!, $limit: Int) { sensorOrError(sensorSelector: $selector) {
  ... on Sensor { sensorState {
    id
    status
    ticks(limit: $limit) {
      tickId status timestamp endTimestamp runIds runKeys skipReason cursor error { message }
    }
  } }
} }
"""

START_SENSOR = """
mutation ($selector: SensorSelector!) { startSensor(sensorSelector: $selector) {
  __typename
  ... on PythonError { message }
} }
"""

STOP_SENSOR = """
mutation ($id: String!) { stopSensor(id: $id) { __typename ... on PythonError { message } } }
"""

ASSETS = """
{ assetNodes {
  assetKey { path }
  description
  groupName
  kinds
  owners { ... on TeamAssetOwner { team } ... on UserAssetOwner { email } }
  dependencyKeys { path }
} }
"""

EVENTS = (
    """
query ($key: AssetKeyInput!, $kinds: [AssetEventHistoryEventTypeSelector!]!, $limit: Int!) {
  assetOrError(assetKey: $key) { ... on Asset {
    assetEventHistory(eventTypeSelectors: $kinds, limit: $limit) { results {
      __typename
      ... on MaterializationEvent {
        runId timestamp partition description metadataEntries { ...metadata }
      }
      ... on ObservationEvent {
        runId timestamp partition description metadataEntries { ...metadata }
      }
    } }
  } }
}
"""
    + METADATA
)

CHECKS = (
    """
query ($key: AssetKeyInput!) { assetNodeOrError(assetKey: $key) { ... on AssetNode {
  assetChecksOrError { ... on AssetChecks { checks {
    name
    executionForLatestMaterialization {
      status
      timestamp
      evaluation { success severity description timestamp metadataEntries { ...metadata } }
    }
  } } }
} } }
"""
    + METADATA
)

BACKFILL = """
mutation ($params: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $params) {
  __typename
  ... on LaunchBackfillSuccess { backfillId }
  ... on PythonError { message }
} }
"""

BACKFILL_STATUS = """
query ($id: String!) { partitionBackfillOrError(backfillId: $id) {
  ... on PartitionBackfill { status }
} }
"""
