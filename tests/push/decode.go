// SPDX-License-Identifier: MIT

// decode reads what ljspy pushes with Pyroscope's own code, in place of its server:
//
//	decode push < BODY     a request to push.v1.PusherService/Push, as JSON
//	decode ingest NAME     the name of a request to /ingest
//
// and prints the labels, one a line, and the length of the profile as "bytes".
package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"

	"connectrpc.com/connect"
	pushv1 "github.com/grafana/pyroscope/api/gen/proto/go/push/v1"
	"github.com/grafana/pyroscope/api/gen/proto/go/push/v1/pushv1connect"
	"github.com/grafana/pyroscope/api/model/labelset"
)

type pusher struct {
	pushv1connect.UnimplementedPusherServiceHandler
}

func (pusher) Push(_ context.Context, request *connect.Request[pushv1.PushRequest]) (*connect.Response[pushv1.PushResponse], error) {
	for _, series := range request.Msg.Series {
		for _, label := range series.Labels {
			fmt.Printf("%s=%s\n", label.Name, label.Value)
		}
		for _, sample := range series.Samples {
			fmt.Printf("bytes=%d\n", len(sample.RawProfile))
		}
	}
	return connect.NewResponse(&pushv1.PushResponse{}), nil
}

func main() {
	if os.Args[1] == "ingest" {
		labels, err := labelset.Parse(os.Args[2])
		if err == nil {
			err = labelset.ValidateLabelSet(labels)
		}
		if err != nil {
			panic(err)
		}
		for name, value := range labels.Labels() {
			fmt.Printf("%s=%s\n", name, value)
		}
		return
	}
	path, handler := pushv1connect.NewPusherServiceHandler(pusher{})
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	request := httptest.NewRequest("POST", pushv1connect.PusherServicePushProcedure, os.Stdin)
	request.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, request)
	if recorder.Code != http.StatusOK {
		panic(recorder.Body.String())
	}
}
