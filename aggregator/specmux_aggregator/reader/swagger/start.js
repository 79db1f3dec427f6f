// Shows the published documents in Swagger UI. Addresses are relative, so that any prefix of a proxy works.
const root = document.body.dataset.root;
const wanted = new URLSearchParams(location.search).get("of");

const answer = await fetch(root, { headers: { Accept: "application/json" } });
const { paths } = await answer.json();
const urls = Object.entries(paths)
  .map(([name, { serverRelativeURL }]) => ({ name, url: root + serverRelativeURL.replace(/^.*?\/openapi\/v3/, "") }))
  .sort((left, right) => left.name.localeCompare(right.name));

SwaggerUIBundle({
  dom_id: "#swagger-ui",
  urls,
  "urls.primaryName": wanted ?? urls[0]?.name,
  // Nobody is sent the documents to judge them.
  validatorUrl: null,
  presets: [SwaggerUIBundle.presets.apis, SwaggerUIStandalonePreset],
  layout: "StandaloneLayout",
  docExpansion: "none",
  defaultModelsExpandDepth: -1,
});
