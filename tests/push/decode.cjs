// SPDX-License-Identifier: MIT
// decode.cjs PACKAGES: read what ljspy pushes to Parca, with Parca's own client, and print the
// labels, one a line, and the length of the profile as "bytes".
const fs = require("fs");
const message = `${process.argv[2]}/@parca/client/dist/parca/profilestore/v1alpha1/profilestore.js`;

import(message).then(({ WriteRawRequest }) => {
  const request = WriteRawRequest.fromJsonString(fs.readFileSync(0, "utf8"), { ignoreUnknownFields: false });
  for (const series of request.series) {
    for (const label of series.labels.labels) console.log(`${label.name}=${label.value}`);
    for (const sample of series.samples) console.log(`bytes=${sample.rawProfile.length}`);
  }
});
