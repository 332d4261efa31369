package web

import (
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
)

// polish writes paths as OpenAPI has them, the mux's {name...} being its own, and
// adds what isn't the library's.
func (s *Server) polish(metrics bool) {
	doc := s.api.OpenAPI()
	for _, name := range []string{"jobId", "key"} {
		for _, prefix := range []string{"/run/", "/api/v1/locks/"} {
			if item := doc.Paths[prefix+"{"+name+"...}"]; item != nil {
				delete(doc.Paths, prefix+"{"+name+"...}")
				doc.Paths[prefix+"{"+name+"}"] = item
			}
		}
	}
	s.describe("/events", "events", "What happens, as it happens",
		"A stream of server-sent events: snapshot, then run, job and instances, with an id each; a comment when it is quiet. With Last-Event-ID, from this instance, it begins with what was missed instead.",
		"text/event-stream", "string")
	s.describe("/openapi.json", "document", "This document", "", documentType, "object")
	if metrics {
		s.describe("/metrics", "metrics", "Metrics for Prometheus", "", "text/plain", "string")
	}
}

// describe adds a GET that answers with one kind of thing.
func (s *Server) describe(path, id, summary, description, media, kind string) {
	o := op(http.MethodGet, path, id, summary)
	o.Description = description
	problems := map[string]*huma.MediaType{problemType: {Schema: s.api.OpenAPI().Components.Schemas.Schema(problemOf, true, "Problem")}}
	o.Responses = map[string]*huma.Response{"200": {Description: summary, Content: map[string]*huma.MediaType{media: {Schema: &huma.Schema{Type: kind}}}}}
	for status, why := range map[string]string{"400": "Bad Request", "401": "Unauthorized", "403": "Forbidden", "503": "Service Unavailable"} {
		o.Responses[status] = &huma.Response{Description: why, Content: problems}
	}
	if path == "/events" {
		o.Parameters = []*huma.Param{{Name: "Last-Event-ID", In: "header", Description: "the id of the last event that was seen", Schema: &huma.Schema{Type: "string"}}}
	}
	s.api.OpenAPI().AddOperation(&o)
}

const documentType = "application/vnd.oai.openapi+json"

// document answers with the API's description.
func (s *Server) document(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", documentType)
	_ = json.NewEncoder(w).Encode(s.api.OpenAPI()) // the client has gone
}
